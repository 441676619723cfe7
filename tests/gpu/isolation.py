"""Each test in a process of its own, so that a kernel that faults takes no other test with it:
after a fault CUDA refuses everything until the process ends. Costs a CUDA context a test."""

from __future__ import annotations

import os
import pickle
import traceback

from _pytest.runner import runtestprotocol
from pytest import TestReport

ISOLATED = bool(os.environ.get("TILEC_ISOLATED"))


def run(item):
    """Runs a test in a child and reports what it reported, or that it died."""
    import tilec.runtime.driver  # noqa: F401, loaded here once; this starts nothing of CUDA

    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _reports_of_child(item):
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _reports_of_child(item):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(write, item)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        text = f"its process ended with status {os.waitstatus_to_exitcode(status)}"
        return [TestReport(item.nodeid, item.location, {}, "failed", text, "call")]
    reports = pickle.loads(answer)
    hook, config = item.config.hook, item.config
    return [hook.pytest_report_from_serializable(config=config, data=data) for data in reports]


def _answer(write, item):
    """Never returns: the child ends here, without the parent's clean-up."""
    status = 1
    try:
        hook, config = item.config.hook, item.config
        reports = runtestprotocol(item, nextitem=None, log=False)
        data = [hook.pytest_report_to_serializable(config=config, report=r) for r in reports]
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(data, pipe)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
