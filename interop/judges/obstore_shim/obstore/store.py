from laneway.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store, from_url  # noqa: F401


class AbsentStore:
    def __init__(self, *_args, **_options):
        raise NotImplementedError(f"Laneway has no {type(self).__name__}")

    @classmethod
    def from_url(cls, *_args, **_options):
        raise NotImplementedError(f"Laneway has no {cls.__name__}")


class HTTPStore(AbsentStore):
    pass
