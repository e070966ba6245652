"""Type stubs for the native module. There is a file for each verb. The classes are in files by subject."""

from laneway._laneway.bytes import Bytes as Bytes
from laneway._laneway.dialect import LocalObjects as LocalObjects
from laneway._laneway.files import AsyncReadableFile as AsyncReadableFile
from laneway._laneway.files import AsyncWritableFile as AsyncWritableFile
from laneway._laneway.files import Fetched as Fetched
from laneway._laneway.files import Opening as Opening
from laneway._laneway.files import ReadableFile as ReadableFile
from laneway._laneway.files import WritableFile as WritableFile
from laneway._laneway.job import Job as Job
from laneway._laneway.plan import OpenedPlan as OpenedPlan
from laneway._laneway.plan import PlanTask as PlanTask
from laneway._laneway.store import ObjectStore as ObjectStore
from laneway._laneway.store import buckets_async as buckets_async
from laneway._laneway.store import set_metadata_async as set_metadata_async
from laneway._laneway.store import url_parts as url_parts
from laneway._laneway.store import versions_async as versions_async
from laneway._laneway.verbs.get import BytesStream as BytesStream
from laneway._laneway.verbs.get import GetResult as GetResult
from laneway._laneway.verbs.list import ListStream as ListStream

__version__: str

def end_logging() -> None: ...
def program(line: list[str], /) -> int: ...
