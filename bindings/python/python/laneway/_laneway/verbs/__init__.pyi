"""Type stubs for the verbs of a store, one file each. These classes don't exist at run time: `ObjectStore` itself has
all methods.
"""

from laneway._laneway.verbs.copy import Copy as Copy
from laneway._laneway.verbs.delete import Delete as Delete
from laneway._laneway.verbs.get import Get as Get
from laneway._laneway.verbs.get_range import GetRange as GetRange
from laneway._laneway.verbs.get_ranges import GetRanges as GetRanges
from laneway._laneway.verbs.head import Head as Head
from laneway._laneway.verbs.list import List as List
from laneway._laneway.verbs.list_with_delimiter import ListWithDelimiter as ListWithDelimiter
from laneway._laneway.verbs.open_reader import OpenReader as OpenReader
from laneway._laneway.verbs.open_writer import OpenWriter as OpenWriter
from laneway._laneway.verbs.put import Put as Put
from laneway._laneway.verbs.rename import Rename as Rename
from laneway._laneway.verbs.sign import Sign as Sign
