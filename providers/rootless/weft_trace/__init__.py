# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What `weft-run --record` has recorded, turned into what people and programs read.

record.py reads a file, which may be cut off, torn or made by an enemy; story.py joins files and
finds out which octets, completions and calls belong to which request; capture.py, timeline.py,
page.py and text.py write.
"""
