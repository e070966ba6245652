from os import PathLike
from typing import final

@final
class LocalObjects:
    @staticmethod
    def in_memory() -> LocalObjects: ...
    @staticmethod
    def in_folder(folder: str | PathLike[str], remove_empty_folders: bool) -> LocalObjects: ...
    @property
    def url(self) -> str: ...
