"""The stubs declare every name, and type checkers accept the package and a program that uses it."""

import ast
import importlib.util
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import laneway
import pytest
from laneway import _laneway

PROGRAM = Path(__file__).with_name("typed.py")
# The installed package, so that a test fails if the wheel leaves a file out.
PACKAGE = Path(laneway.__file__).parent


@pytest.mark.parametrize(
    "checker", [["mypy", "--strict", "--no-incremental"], ["pyright", "--pythonpath", sys.executable]], ids=lambda c: c[0]
)
def test_checkers_accept_the_package_and_a_program(checker):
    if importlib.util.find_spec(checker[0]) is None:
        pytest.skip(f"{checker[0]} is not installed")
    command = [sys.executable, "-m", *checker, str(PACKAGE), str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "nodeenv" in done.stderr or "ENOTFOUND" in done.stderr:
        pytest.skip(f"{checker[0]} could not get what it runs on")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_every_name_is_in_a_stub():
    stubs = [ast.parse(path.read_text()) for path in (PACKAGE / "_laneway").rglob("*.pyi")]
    classes = {node.name: node for stub in stubs for node in stub.body if isinstance(node, ast.ClassDef)}

    def names(stub):
        # Includes the names in the base classes, from which a store inherits its verbs.
        bases = [name for base in stub.bases if isinstance(base, ast.Attribute) for name in names(classes[base.attr])]
        return {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}.union(bases)

    for name, kind in inspect.getmembers(_laneway, inspect.isclass):
        there = {verb for verb in vars(kind) if not verb.startswith("_")}
        assert there == {verb for verb in names(classes[name]) if not verb.startswith("_")}, name


def test_every_verb_is_a_function_has_a_twin_a_stub_and_a_test():
    verbs = {path.stem for path in (PACKAGE / "_laneway/verbs").glob("*.pyi")} - {"__init__"}
    assert len(verbs) > 10
    for verb in verbs:
        assert Path(__file__).with_name(f"test_{verb}.py").exists(), verb
        twin = [f"{verb}_async"] if verb != "list" else []
        for name in [verb, *twin]:
            assert name in laneway.__all__ and hasattr(laneway.ObjectStore, name), name


def test_all_names_are_there():
    assert sorted(laneway.__all__) == laneway.__all__
    for name in laneway.__all__:
        assert getattr(laneway, name) is not None


def test_functions_have_signatures_with_annotations():
    functions = [name for name in laneway.__all__ if inspect.isroutine(getattr(laneway, name))]
    assert len(functions) >= 30
    for name in functions:
        function = getattr(laneway, name)
        signature = inspect.signature(function)
        bare = [one.name for one in signature.parameters.values() if one.annotation is one.empty and one.kind is not one.VAR_KEYWORD]
        assert not bare and signature.return_annotation is not signature.empty and inspect.getdoc(function), (name, bare)
        if hasattr(laneway.ObjectStore, name) and not name.startswith("copy"):
            method = inspect.signature(getattr(laneway.ObjectStore, name))
            of_function = [*signature.parameters.values()][1:]
            assert [(one.name, one.kind, one.default) for one in of_function] == [
                (one.name, one.kind, one.default) for one in [*method.parameters.values()][1:]
            ], name
    assert typing.get_type_hints(laneway.head)["return"] is laneway.types.ObjectMeta
    assert [*inspect.signature(laneway.sync).parameters][:4] == ["source", "destination", "delete", "allow_empty"]
    assert "recursive" in inspect.signature(laneway.copy).parameters


def test_the_package_lists_its_own_names_alone():
    assert dir(laneway) == sorted(laneway.__all__)
