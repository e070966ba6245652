"""Objects whose names would lead outside the directory to which they are copied."""

import os

import laneway
import pytest

HOSTILE = ["../evil", "../../evil", "a/../../evil", "..", "a/..", "./evil", "a//evil", "/etc/evil", "a/./evil", "../lake/evil"]
GOOD = ["good", "a..b", "..c", "d.."]


def put_all(store):
    """Stores an object under each name, except for names that Laneway refuses on Azure."""
    for key in HOSTILE + GOOD:
        if store.scheme == "az" and {".", ".."} & {*key.split("/")}:
            with pytest.raises(laneway.exceptions.InvalidError, match="segments"):
                store.put(key, b"")
            continue
        store.put(key, key.encode())


@pytest.fixture
def hostile(filesystem, store):
    """Returns a filesystem, and a folder of objects with hostile and with good names."""
    scheme = store.scheme
    put_all(store)
    return filesystem(scheme, skip_instance_cache=True), store.url.partition("://")[2].rstrip("/")


def outside(tmp_path, but):
    """Returns all files and folders outside a directory."""
    found = []
    for folder, folders, files in os.walk(tmp_path):
        folders[:] = [name for name in folders if os.path.join(folder, name) != str(but)]
        found += [os.path.join(folder, name) for name in [*folders, *files]]
    return sorted(found)


@pytest.fixture
def out(tmp_path):
    """Makes a directory some levels below `tmp_path`, with a file outside it."""
    folder = tmp_path / "deep" / "er" / "out"
    folder.mkdir(parents=True)
    (tmp_path / "deep" / "theirs").write_text("theirs")
    return folder


def tries(fs, folder, out):
    """Returns the calls that write files with many names."""
    return {
        "recursive": lambda: fs.get(f"{folder}/", f"{out}/", recursive=True),
        "two levels": lambda: fs.get(f"{folder}/", f"{out}/", recursive=True, maxdepth=2),
        "many levels": lambda: fs.get(f"{folder}/", f"{out}/", recursive=True, maxdepth=9),
        "a pattern": lambda: fs.get(f"{folder}/*", f"{out}/"),
        "any depth": lambda: fs.get(f"{folder}/**", f"{out}/"),
        "names": lambda: fs.get([f"{folder}/good", f"{folder}/../evil", f"{folder}/a/.."], f"{out}/"),
    }


def test_nothing_is_written_beside_the_directory_that_fsspec_gets_into(hostile, out, tmp_path):
    fs, folder = hostile
    before = outside(tmp_path, out)
    for way, get in tries(fs, folder, out).items():
        try:
            get()
        except (laneway.exceptions.BaseError, OSError, ValueError):
            pass
        assert outside(tmp_path, out) == before, way
        assert (tmp_path / "deep" / "theirs").read_text() == "theirs"
    # A name that stays inside the directory is allowed, even with dots.
    for key in GOOD:
        fs.get(f"{folder}/{key}", f"{out}/{key}")
        assert (out / key).read_bytes() == key.encode()


def test_nothing_is_written_beside_the_directory_that_a_job_copies_to(store, anywhere, out, tmp_path):
    put_all(store)
    before = outside(tmp_path, out)
    with pytest.raises(laneway.exceptions.BaseError):
        laneway.copy(store.url, out, recursive=True, contents=True, config=anywhere)
    assert outside(tmp_path, out) == before
    assert sorted(os.listdir(out)) == sorted(GOOD)
    assert all((out / key).read_bytes() == key.encode() for key in GOOD)
    with pytest.raises(laneway.exceptions.BaseError):
        laneway.sync(store.url, out, config=anywhere)
    assert outside(tmp_path, out) == before
