"""In CI a skipped test fails.

Everything a test needs is installed there, so a skipped test has silently stopped testing.
"""

import os
from collections.abc import Generator

import pytest


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def _failed_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip a failure. An expected failure is reported as a skip too, and stays."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped although this is CI: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _is_ci():
        _failed_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if _is_ci():
        _failed_instead(report)
    return report
