"""Prints what became of each test of a file of JUnit's form: "passed NAME", or "failed NAME", also of one that was skipped."""
import sys
import xml.etree.ElementTree as ElementTree

for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    print("failed" if len(case.findall("*[@message]")) else "passed", case.get("name"))
