"""Loading, in the midst of which Python may run a finalizer that loads the same: it does not wait
for itself."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from manifest_samples import add_kernel
from noting_driver import NotingDriver, module

from tilec.runtime import beside
from tilec.runtime.beside import Beside
from tilec.runtime.machine_code import Code


def loads(monkeypatch, tmp_path, what, finalizer):
    """A function that loads, and runs the finalizer meanwhile."""

    def loaded(*_):
        finalizer()
        return SimpleNamespace()

    if what == "code":
        driver = NotingDriver()
        driver.loaded = loaded
        return module(driver).code
    if what == "kernel":
        monkeypatch.setattr(Code, "_loaded", loaded)
        code = Code(b"", "sm_90a", "add.cubin")
        return lambda: code.kernel(add_kernel().variants[0], 0)
    monkeypatch.setattr(beside, "load", loaded)
    (tmp_path / "add.cubin").touch()
    return Beside(str(tmp_path / "add.py"), {"sm_90a": "add.cubin"}).module


@pytest.mark.parametrize("what", ["code", "kernel", "module"])
def test_a_finalizer_may_load_what_is_being_loaded(what, monkeypatch, tmp_path):
    depth = []

    def finalizer():
        if not depth:
            depth.append(1)
            load()

    load = loads(monkeypatch, tmp_path, what, finalizer)
    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it waits for itself"
    assert load() is load()
