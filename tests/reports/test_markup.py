from __future__ import annotations

import json

from dr3.reports.markup import Html, data_block, join, tag


def test_what_is_not_markup_is_escaped():
    assert tag("p", "<b>", tag("i", '"&')) == "<p>&lt;b&gt;<i>&quot;&amp;</i></p>"
    assert join(["a<", Html("<br>"), None, False, 3]) == "a&lt;<br>3"


def test_attributes():
    made = tag("input", class_="a", data_label='"><script>', checked=True, hidden=False, id=None)
    assert made == '<input class="a" data-label="&quot;&gt;&lt;script&gt;" checked/>'


def test_a_data_block_cannot_be_ended_from_inside():
    record = {"name": "</script><script>alert(1)</script> & <!--"}
    block = data_block("values", record)
    assert block.count("<") == 2
    assert "&" not in block
    assert json.loads(block.partition(">")[2].removesuffix("</script>")) == record
