"""Columns of a Parquet file that are fetched before a reader asks for them."""

from types import SimpleNamespace

import pytest

pytest.importorskip("fsspec")
from laneway.fsspec._columns import FOLDERS_MAX, WINDOW_FIRST, Columns, Folders, Layout, Range, folder_of

MIB = 1 << 20


def layout(groups, columns, size):
    """Returns the layout of a file whose columns all have the same size."""

    def chunk(group, column):
        # Every other column begins with a dictionary.
        start = (group * columns + column) * size + 4
        page, dictionary = (start + 100, start) if column % 2 else (start, None)
        return SimpleNamespace(
            data_page_offset=page,
            has_dictionary_page=dictionary is not None,
            dictionary_page_offset=dictionary,
            total_compressed_size=size,
            path_in_schema=f"c{column}",
        )

    def row_group(group):
        return SimpleNamespace(column=lambda column: chunk(group, column))

    return Layout(SimpleNamespace(num_row_groups=groups, num_columns=columns, row_group=row_group))


def test_the_first_row_group_predicts_nothing():
    place = layout(groups=3, columns=10, size=MIB)
    columns = Columns(place)
    assert [columns.read(place.chunk(0, column)) for column in (2, 5)] == [[], []]
    assert columns.names == {"c2", "c5"} and columns.groups_read == 1


def test_a_column_is_taken_to_be_read_of_some_row_groups_that_follow():
    place = layout(groups=40, columns=10, size=2 * MIB)
    columns = Columns(place, reads_all=True)
    assert columns.read(place.chunk(7, 2)) == [[place.chunk(group, 2)] for group in range(7, 11)]
    assert columns.read(place.chunk(7, 5)) == [[place.chunk(group, 5)] for group in range(7, 11)]
    # The second row group confirms the prediction.
    more = columns.read(place.chunk(8, 2))
    assert more == [[place.chunk(group, 2), place.chunk(group, 5)] for group in range(11, 13)]


def test_where_single_row_groups_are_read_nothing_is_taken_for_the_next():
    folders = Folders()
    assert folders.reads_all("f")
    folders.remember_groups("f", read=1, of=9)
    assert not folders.reads_all("f") and folders.reads_all("g")
    folders.remember_groups("f", read=1, of=1)
    assert not folders.reads_all("f"), "a file of one row group says nothing"
    assert Columns(layout(groups=9, columns=3, size=MIB)).begin(frozenset({"c1"}), WINDOW_FIRST) == []
    folders.remember_groups("f", read=2, of=9)
    assert folders.reads_all("f")


def test_a_second_row_group_fetches_its_columns_of_the_following_ones():
    place = layout(groups=40, columns=10, size=2 * MIB)
    columns = Columns(place)
    for column in (2, 5):
        columns.read(place.chunk(0, column))
    first = columns.read(place.chunk(1, 2))
    assert first == [[place.chunk(group, 2), place.chunk(group, 5)] for group in range(1, 5)]
    assert sum(end - start for chunks in first for start, end in chunks) == WINDOW_FIRST
    fetched = 4
    for group in range(1, 40):
        for column in (2, 5):
            if (group, column) != (1, 2):
                fetched += len(columns.read(place.chunk(group, column)))
    assert fetched == 39, "each once"


def test_row_groups_read_in_no_order_are_fetched_once():
    place = layout(groups=12, columns=10, size=MIB // 16)
    columns = Columns(place)
    order = [(0, 7), (2, 4), (3, 7), (3, 2), (1, 2)]
    order += [(group, column) for group in range(12) for column in (4, 2, 7) if (group, column) not in order]
    fetched, alone = [], []
    for group, column in order:
        chunk = place.chunk(group, column)
        now = columns.read(chunk)
        fetched += [chunk for chunks in now for chunk in chunks]
        if chunk not in fetched:
            alone.append((group, column))
    assert len(fetched) == len(set(fetched))
    assert alone == [(0, 7)]


def test_what_nobody_asks_for_holds_back_what_else_would_be_fetched():
    place = layout(groups=90, columns=4, size=4 * MIB)
    columns = Columns(place)
    columns.read(place.chunk(0, 1))
    assert len(columns.read(place.chunk(1, 1))) == 4
    again = [len(columns.read(place.chunk(1, 1))) for _ in range(9)]
    assert again == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert columns.read(place.chunk(60, 1)) == [[place.chunk(group, 1)] for group in range(60, 64)]


def test_the_file_before_foretells_the_columns_of_the_next_one():
    place = layout(groups=1, columns=10, size=MIB)
    columns = Columns(place, frozenset({"c2", "c5", "gone"}))
    assert columns.read(place.chunk(0, 5)) == [[place.chunk(0, 2), place.chunk(0, 5)]]
    assert columns.read(place.chunk(0, 2)) == []
    other = Columns(place, frozenset({"c2", "c5"}))
    assert other.read(place.chunk(0, 7)) == [], "other columns are read now"
    assert other.read(place.chunk(0, 2)) == []


def test_columns_of_the_next_file_are_fetched_within_the_window():
    place = layout(groups=20, columns=10, size=MIB)
    columns = Columns(place, reads_all=True)
    assert columns.begin(frozenset(), WINDOW_FIRST) == []
    assert columns.begin(frozenset({"c2"}), 3 * MIB) == [[place.chunk(group, 2)] for group in range(3)]
    assert columns.begin(frozenset({"c2", "c5"}), 3 * MIB) == [[place.chunk(group, 5)] for group in range(3)]
    assert columns.begin(frozenset({"c2", "c5"}), 8 * MIB) == [[place.chunk(3, 2), place.chunk(3, 5)]]
    # The reader finds the fetched columns, and Laneway goes on to fetch the columns after them.
    read = [place.chunk(group, column) for group in range(2) for column in (2, 5)]
    fetched = [chunk for asked in read for chunks in columns.read(asked) for chunk in chunks]
    assert fetched == [place.chunk(group, column) for group in range(4, 12) for column in (2, 5)]


def test_whole_columns_are_located_and_pieces_are_not():
    place = layout(groups=2, columns=10, size=MIB)
    first, second = place.chunk(1, 3), place.chunk(1, 4)
    assert place.locate(Range(first.start, second.end)) == (1, [3, 4])
    assert place.locate(Range(first.start, second.end - 1)) is None
    assert place.locate(Range(first.start + 1, first.end)) is None
    assert place.locate(Range(0, 4)) is None


def test_a_column_that_is_larger_than_a_window_is_fetched_alone():
    place = layout(groups=5, columns=2, size=100 * MIB)
    columns = Columns(place)
    columns.read(place.chunk(0, 0))
    assert columns.read(place.chunk(1, 0)) == [[place.chunk(1, 0)]]
    assert columns.read(place.chunk(2, 0)) == [[place.chunk(2, 0)]]


def test_a_footer_that_is_none_foretells_nothing():
    assert Layout.of_footer(b"nothing of the kind PAR1") is None


def test_folders_are_forgotten_when_there_are_many():
    folders = Folders()
    for number in range(FOLDERS_MAX + 1):
        folders.remember(str(number), frozenset({"a"}), is_all=True)
    assert not folders.columns("0")
    assert folders.columns("1") == {"a"}


def test_partial_reads_add_columns_and_a_whole_read_replaces_them():
    folders = Folders()
    folders.remember("f", frozenset({"a", "b"}), is_all=False)
    folders.remember("f", frozenset({"a"}), is_all=False)
    assert folders.columns("f") == {"a", "b"}
    folders.remember("f", frozenset({"a"}), is_all=True)
    assert folders.columns("f") == {"a"}


def test_what_is_read_now_is_certain_once_columns_of_it_were_read():
    folders = Folders()
    folders.remember("f", frozenset({"a"}), is_all=True)
    folders.remember("g", frozenset({"b"}), is_all=True)
    assert folders.certain("f") == {"a"}
    folders.doubt("f")
    assert (folders.certain("f"), folders.columns("f"), folders.certain("g")) == (set(), {"a"}, {"b"})
    folders.remember("f", frozenset({"a"}), is_all=False)
    assert folders.certain("f") == {"a"}


def test_folders_by_whose_names_a_table_is_parted_are_one():
    assert folder_of("lake/t/year=2024/month=1/0.parquet") == folder_of("lake/t/1.parquet") == "lake/t"
    assert folder_of("lake/year=2024/t/0.parquet") == "lake/year=2024/t"
