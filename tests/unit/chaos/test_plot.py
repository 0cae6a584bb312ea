"""The picture of a run is small, and has a line for each process."""

from xml.etree import ElementTree as ET

from chaos.judge.record import Record
from chaos.plot import picture


def test_a_picture_has_a_line_of_few_points_for_each_process() -> None:
    record = Record()
    for at in range(3600):
        for name in ("daemon", "server0"):
            sample = {"process": name, "pid": 1, "bytes": at << 20, "descriptors": 9}
            record.notes["sample"].append({"at": float(at), **sample})
        record.notes["database"].append({"at": float(at), "bytes": at << 20})
    drawn = ET.fromstring(picture(record))
    lines = [each.attrib["points"].split() for each in drawn if each.tag.endswith("polyline")]
    assert len(lines) == 2 + 2 + 1
    assert all(len(points) <= 200 for points in lines)


def test_a_run_of_which_nothing_was_seen_has_a_picture() -> None:
    assert picture(Record()).startswith("<svg")
