"""Files that are opened before a reader asks for them."""

import pytest

pytest.importorskip("fsspec")
from laneway.fsspec._entries import file, tree
from laneway.fsspec._order import AGE_MAX_S, AHEAD_FIRST, AHEAD_MAX, LOOK_MAX, Order, following


def listings(*keys):
    """Returns the listings that are cached after a listing of a bucket with these keys."""
    metas = [{"path": key, "size": 1, "last_modified": None, "e_tag": "x", "version": None} for key in keys]
    return tree("lake", (file("lake", meta) for meta in metas))


def after(levels, name):
    return [*following(levels.get, name)]


def parts(count, folder="t"):
    return [f"{folder}/{number:03}.parquet" for number in range(count)]


def order_of(keys):
    levels = listings(*keys)
    return Order(lambda name: following(levels.get, name))


def opened_of(order, names, gap_s):
    """Asks for files at equal intervals. Returns whether each file had been opened ahead, and the names of all
    files that were opened ahead."""
    asked = [order.asked(name, 100 + number * gap_s) for number, name in enumerate(names)]
    return [one.is_ahead for one in asked], [name for one in asked for name in one.begin]


def test_files_follow_each_other_through_folders():
    levels = listings("t/a/1.parquet", "t/a/2.parquet", "t/b/c/1.parquet", "t/z.parquet", "u/1.parquet")
    assert after(levels, "lake/t/a/1.parquet") == [
        "lake/t/a/2.parquet",
        "lake/t/b/c/1.parquet",
        "lake/t/z.parquet",
        "lake/u/1.parquet",
    ]
    assert after(levels, "lake/t/a/2.parquet")[0] == "lake/t/b/c/1.parquet"
    assert after(levels, "lake/t/a/15.parquet")[0] == "lake/t/a/2.parquet", "one that isn't listed"
    assert after(levels, "lake/u/1.parquet") == after(levels, "other/t/1.parquet") == after(levels, "") == []


def test_what_is_about_a_table_is_none_of_its_files():
    levels = listings("t/1.parquet", "t/1.parquet.crc", "t/2.csv", "t/_delta_log/1.parquet", "t/_x.parquet", "t/a/.3.parquet", "t/b.parquet/4.parquet")
    assert after(levels, "lake/t/1.parquet") == ["lake/t/b.parquet/4.parquet"]


def test_nothing_is_known_beyond_a_folder_that_was_not_listed():
    levels = listings("t/a/1.parquet", "t/b/1.parquet", "t/c/1.parquet")
    del levels["lake/t/b"]
    assert after(levels, "lake/t/a/1.parquet") == []
    del levels["lake/t"]
    assert after(levels, "lake/t/b/1.parquet") == []


def test_a_listing_is_looked_through_so_far_and_no_further():
    others = [f"t/{number:04}.csv" for number in range(LOOK_MAX)]
    assert after(listings("t/-.parquet", *others[1:], "t/a.parquet"), "lake/t/-.parquet") == ["lake/t/a.parquet"]
    assert after(listings("t/-.parquet", *others, "t/a.parquet"), "lake/t/-.parquet") == []


def test_files_that_are_opened_in_order_are_ahead_from_the_third_on():
    names = [f"lake/{part}" for part in parts(40)]
    is_ahead, begun = opened_of(order_of(parts(40)), names, gap_s=0.01)
    assert is_ahead == [False, False] + [True] * 38
    assert begun == names[2:], "each once"


def test_the_first_file_may_be_opened_twice():
    names = [f"lake/{part}" for part in parts(9)]
    is_ahead, begun = opened_of(order_of(parts(9)), [names[0], *names], gap_s=0.01)
    assert is_ahead == [False] * 3 + [True] * 7
    assert begun == names[2:]


def test_so_many_are_ahead_and_no_more():
    names = [f"lake/{part}" for part in parts(100)]
    order, ahead, most = order_of(parts(100)), set(), 0
    for number, name in enumerate(names):
        asked = order.asked(name, number * 0.01)
        ahead = ahead - {name} | {*asked.begin}
        assert number != 1 or len(ahead) == AHEAD_FIRST
        most = max(most, len(ahead))
    assert most == AHEAD_MAX


@pytest.mark.parametrize("chosen", [[5], [5, 3, 1], [0, 2, 4, 6], [9, 8, 7]])
def test_nothing_is_begun_where_files_are_opened_in_another_order(chosen):
    is_ahead, begun = opened_of(order_of(parts(10)), [f"lake/{parts(10)[number]}" for number in chosen], gap_s=0.01)
    assert (any(is_ahead), begun) == (False, [])


def test_files_that_take_long_are_opened_one_by_one():
    names = [f"lake/{part}" for part in parts(10)]
    assert opened_of(order_of(parts(10)), names, gap_s=AGE_MAX_S) == ([False] * 10, [])
    is_ahead, begun = opened_of(order_of(parts(10)), names, gap_s=AGE_MAX_S / 2)
    assert is_ahead == [False, False] + [True] * 8
    assert begun == names[2:]


def test_what_is_too_old_is_dropped_and_opened_anew():
    order, names = order_of(parts(10)), [f"lake/{part}" for part in parts(10)]
    order.asked(names[0], 0.0)
    assert order.asked(names[1], 0.1).begin == names[2:4]
    late = order.asked(names[2], 0.2 + AGE_MAX_S)
    assert (late.is_ahead, late.drop) == (False, [names[3]])


def test_what_is_too_old_is_let_go_of_though_nothing_is_opened():
    order, names = order_of(parts(10)), [f"lake/{part}" for part in parts(10)]
    assert order.oldest_s is None and not order.is_any_begun
    order.asked(names[0], 0.0)
    order.asked(names[1], 0.1)
    order.asked(names[2], 0.2)
    assert order.oldest_s == 0.1 and order.expired(0.1 + AGE_MAX_S) == []
    assert order.expired(0.15 + AGE_MAX_S) == [names[3]] and order.oldest_s == 0.2
    assert order.expired(0.3 + AGE_MAX_S) == names[4:7] and not order.is_any_begun


def test_what_was_written_is_opened_anew():
    order, names = order_of(parts(10)), [f"lake/{part}" for part in parts(10)]
    order.asked(names[0], 0.0)
    order.asked(names[1], 0.1)
    assert order.forget("lake/t/00") == []
    assert order.forget(names[2]) == [names[2]]
    assert not order.asked(names[2], 0.2).is_ahead
    ahead = order.forget("lake/t")
    assert ahead[0] == names[3] and order.forget("") == []


def test_two_tables_are_read_at_once():
    keys = parts(12, "a") + parts(12, "b")
    order = order_of(keys)
    # After two files in a row, the table is known, even if files of another table are read in between.
    first, second = ([f"lake/{part}" for part in parts(12, folder)] for folder in "ab")
    opened_of(order, first[:2], gap_s=0.01)
    opened_of(order, second[:2], gap_s=0.01)
    by_turns = [name for pair in zip(first[2:], second[2:], strict=True) for name in pair]
    is_ahead, _ = opened_of(order, by_turns, gap_s=0.01)
    assert all(is_ahead)
