# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One HTML page for people: a QP's requests as bars, who waited for whom, latencies, errors.

It loads nothing: styles, script and data are in it. The script draws the bars; the tables and
histograms are there without it.
"""
import html
import json
import math

from . import names, record, text
from .timeline import lanes_of, phases

MOST_BARS = 4000                # of a QP: the latest
FLUSHED = 4                     # WEFT_WC_FLUSH_ERR
FIRST_BARS = 60                 # of a QP that are shown first
MOST_WAITS = 20
STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:0 16px 40px;color:#1b1f24;background:#fff}
h1{font-size:22px}h2{font-size:17px;margin:28px 0 8px}h3{font-size:14px;margin:16px 0 4px}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid #e4e7eb;
vertical-align:top}th{font-weight:600;color:#57606a}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.note{color:#57606a}.bad{color:#b3261e;font-weight:600}svg{display:block}svg text{font:11px system-ui,sans-serif;fill:#57606a}
.bars{border:1px solid #d0d7de;border-radius:4px;cursor:grab;touch-action:none;user-select:none;overflow:hidden}
.key span{display:inline-block;margin-right:16px}.key i{display:inline-block;width:12px;height:12px;border-radius:2px;
margin-right:5px;vertical-align:-1px}#tip{position:fixed;display:none;background:#1b1f24;color:#fff;padding:6px 9px;
border-radius:4px;font-size:12px;white-space:pre;pointer-events:none;z-index:9;max-width:90vw;overflow:hidden}
"""
COLOURS = [("waits to be sent", "#8c959f"), ("is sent", "#2f81f7"), ("waits for its completion", "#d4a72c"),
           ("waits to be polled", "#bf5af2"), ("waits for a message", "#d8dee4"), ("is filled", "#2da44e")]
SCRIPT = r"""
'use strict';
const data=JSON.parse(document.getElementById('data').textContent),tip=document.getElementById('tip');
const colour=Object.fromEntries(data.colours),NS='http://www.w3.org/2000/svg';
function duration(us){const a=Math.abs(us);return a>=1e6?(us/1e6).toFixed(3)+' s':a>=1e3?(us/1e3).toFixed(2)+' ms':us.toFixed(2)+' us'}
function el(name,attrs,parent){const e=document.createElementNS(NS,name);for(const k in attrs)e.setAttribute(k,attrs[k]);
 parent.appendChild(e);return e}
let from=data.view[0],to=data.view[1];
const charts=[];
function chart(box,qp){
 const lanes=Math.max(1,qp.lanes),row=Math.max(4,Math.min(16,Math.floor(320/lanes))),top=18;
 const width=box.clientWidth||1160,svg=el('svg',{width:width,height:top+lanes*row+4,role:'img'},box);
 const x=t=>(t-from)/(to-from)*width;
 function paint(){
  svg.textContent='';
  const step=Math.pow(10,Math.floor(Math.log10((to-from)/3)));
  for(let t=Math.ceil(from/step)*step;t<to;t+=step){
   el('line',{x1:x(t),x2:x(t),y1:12,y2:top+lanes*row,stroke:'#eaeef2'},svg);
   el('text',{x:x(t)+2,y:11},svg).textContent=duration(t)}
  let drawn=0;
  for(const bar of qp.bars){
   if(bar.e<from||bar.b>to)continue;
   if(++drawn>1500)break;
   const y=top+bar.l*row,g=el('g',{class:'bar'},svg),half=bar.s?row/2:0;
   el('rect',{x:x(bar.b),y:y,width:Math.max(1,x(bar.e)-x(bar.b)),height:row-1,fill:bar.s?'#b3261e':'#eaeef2'},g);
   for(const [n,b,e] of bar.p)
    el('rect',{x:x(b),y:y+half,width:Math.max(.5,x(e)-x(b)),height:row-half-1,fill:colour[n],'data-phase':n},g);
   g.addEventListener('pointermove',ev=>{tip.style.display='block';tip.style.left=Math.min(ev.clientX+14,innerWidth-420)+'px';
    tip.style.top=(ev.clientY+14)+'px';
    tip.textContent=bar.t+'\n'+bar.p.map(p=>duration(p[2]-p[1]).padStart(12)+'  '+p[0]).join('\n')});
   g.addEventListener('pointerleave',()=>tip.style.display='none')}
  box.dataset.drawn=drawn;
 }
 let grip=null;
 box.addEventListener('wheel',ev=>{ev.preventDefault();const at=from+(to-from)*(ev.clientX-box.getBoundingClientRect().left)/width,
  z=ev.deltaY<0?.7:1/.7;from=at-(at-from)*z;to=at+(to-at)*z;all()},{passive:false});
 box.addEventListener('pointerdown',ev=>{grip=[ev.clientX,from,to];box.setPointerCapture(ev.pointerId)});
 box.addEventListener('pointermove',ev=>{if(!grip)return;const d=(ev.clientX-grip[0])/width*(grip[2]-grip[1]);
  from=grip[1]-d;to=grip[2]-d;all()});
 box.addEventListener('pointerup',()=>grip=null);
 box.addEventListener('dblclick',()=>{[from,to]=data.all;all()});
 charts.push(paint);
}
function all(){for(const paint of charts)paint()}
document.querySelectorAll('.bars').forEach(box=>chart(box,data.qps[box.dataset.qp]));
all();
document.body.dataset.ready='yes';
"""


def esc(words):
    return html.escape(str(words), quote=True)


def table(identity, heads, rows, numbers=()):
    cells = "".join("<th%s>%s</th>" % (' class="n"' if i in numbers else "", esc(h)) for i, h in enumerate(heads))
    body = "".join("<tr>%s</tr>" % "".join(
        "<td%s>%s</td>" % (' class="n"' if i in numbers else "", esc(c)) for i, c in enumerate(row)) for row in rows)
    return '<table id="%s"><thead><tr>%s</tr></thead><tbody>%s</tbody></table>' % (identity, cells, body)


def is_bad(request):
    """A QP that ends flushes what it has: that is no error by itself."""
    return bool(request.status) and request.status != FLUSHED


# ---- processes ----

def processes(story):
    rows = []
    for process in story.processes:
        bad = sum(1 for r in process.requests if is_bad(r))
        flushed = sum(1 for r in process.requests if r.status == FLUSHED)
        under_way = sum(1 for r in process.requests if r.completed is None)
        rows.append((process.name, process.record.host, len({r.qpn for r in process.requests if r.qpn}),
                     len(process.requests), bad, flushed, under_way, text.head_of(process).split(": ", 1)[1]))
    return table("processes", ("process", "host", "QPs", "requests", "errors", "flushed", "under way", "record"), rows,
                 (2, 3, 4, 5, 6))


# ---- latencies ----

def by_kind(story):
    """(process, name) -> nanoseconds from post to completion, of requests that succeeded."""
    kinds = {}
    for process in story.processes:
        for request in process.requests:
            if not request.is_receive and request.status == 0 and request.completed is not None:
                kinds.setdefault((process.name, request.name), []).append(request.completed - request.posted)
    return kinds


def rounded(ns):
    number, unit = text.duration(ns).split()
    return "%.0f %s" % (float(number), unit)


def histogram(title, values):
    """Buckets of a factor of 2."""
    values = sorted(max(1, v) for v in values)
    low, high = int(math.log2(values[0])), int(math.log2(values[-1]))
    counts = [0] * (high - low + 1)
    for value in values:
        counts[int(math.log2(value)) - low] += 1
    width, most, bars = 54, max(counts), []
    for i, count in enumerate(counts):
        tall = round(90 * count / most)
        bars.append('<rect x="%d" y="%d" width="%d" height="%d" fill="#2f81f7"><title>%d requests from %s to %s</title>'
                    '</rect><text x="%d" y="%d">%s</text><text x="%d" y="122">%s</text>' %
                    (i * width + 2, 104 - tall, width - 4, tall, count, text.duration(1 << low + i),
                     text.duration(2 << low + i), i * width + 4, 100 - tall, count or "", i * width + 2,
                     rounded(1 << low + i)))
    return '<h3>%s</h3><svg class="histogram" width="%d" height="128" role="img">%s</svg>' % (
        esc(title), width * len(counts) + 10, "".join(bars))


def percentile(values, part):
    return values[min(len(values) - 1, int(len(values) * part))]


def latencies(story):
    rows, pictures = [], []
    for (process, name), values in sorted(by_kind(story).items()):
        values.sort()
        rows.append((process, name, len(values)) + tuple(text.duration(v) for v in (
            values[0], percentile(values, .5), percentile(values, .99), values[-1])))
        pictures.append(histogram("%s of %s" % (name, process), values))
    if not rows:
        return '<p class="note" id="latencies">No request has completed.</p>'
    return table("latencies", ("process", "request", "number", "least", "median", "99 %", "most"), rows,
                 (2, 3, 4, 5, 6)) + "".join(pictures)


# ---- who waited for whom ----

def waits_of(request):
    """(nanoseconds, who waited, for whom)."""
    name = "%ss of %s, QP 0x%x" % (request.name, request.process.name, request.qpn)
    peer = request.peer
    found = []
    if request.completed is not None and request.polled is not None:
        found.append((request.polled - request.completed, "completions of " + name,
                      "%s to poll" % request.process.name))
    if request.is_receive and peer and peer.first is not None:
        late = request.posted + request.process.shift - peer.first - peer.process.shift
        found.append((late, "messages of the %ss of %s" % (peer.name, peer.process.name),
                      "%s to post a receive" % request.process.name))
    elif not request.is_receive:
        if request.first is not None:
            found.append((request.first - request.posted, name,
                          "requests before them, or room in TCP, in %s" % request.process.name))
        if request.last is not None and request.completed is not None:
            found.append((request.completed - request.last, name,
                          "%s to answer, or TCP to take them" % (peer.process.name if peer else "the other end")))
    return found


def waits(story):
    groups = {}
    for process in story.processes:
        for request in process.requests:
            for ns, who, whom in waits_of(request):
                if ns > 0:
                    groups.setdefault((who, whom), []).append(ns)
    ordered = sorted(groups.items(), key=lambda g: -sum(g[1]))[:MOST_WAITS]
    rows = [(who, whom, len(all_), text.duration(sum(all_)), text.duration(sorted(all_)[len(all_) // 2]),
             text.duration(max(all_))) for (who, whom), all_ in ordered]
    return table("waits", ("who waited", "for whom", "how often", "in all", "median", "longest"), rows, (2, 3, 4, 5))


# ---- errors ----

def errors(story):
    rows = []
    for process in story.processes:
        for request in process.requests:
            if is_bad(request):
                rows.append((request.completed + process.shift, process.name, "QP 0x%x" % request.qpn,
                             "%s of wr_id 0x%x: %s" % (request.name, request.wr_id, request.status_name),
                             request.where))
        for entry in process.record.entries:
            if is_error(entry):
                rows.append((entry.ns + process.shift, process.name, "QP 0x%x" % entry.qpn if entry.qpn else "",
                             text.say(process, entry), ""))
    if not rows:
        return '<p class="note" id="errors">None.</p>'
    rows.sort(key=lambda r: r[0])
    heads = ("when", "process", "where", "what", "posted by")
    shown = [(text.date(story.date_of(r[0])),) + r[1:] for r in rows[:500]]
    more = '<p class="note">%d more are not shown.</p>' % (len(rows) - 500) if len(rows) > 500 else ""
    return table("errors", heads, shown) + more


def is_error(entry):
    if entry.type == record.EVENT:
        number = entry.body.number
        bad = {record.ASYNC_EVENT: (0, 1, 2, 3, 8, 10, 14), record.CM_EVENT: (1, 3, 6, 7, 8, 11)}
        return number in bad.get(entry.body.source, ())
    if entry.type == record.FPDU:
        return len(entry.data) > 3 and not entry.flags & record.START and entry.data[3] & 15 == names.OP_TERMINATE
    return entry.type == record.CONN_END and entry.body.error


# ---- bars ----

def bars_of(story, process, requests):
    start = story.start - process.shift
    last = process.record.entries[-1].ns
    slices = [(r.posted, max(r.posted, last if r.end is None else r.end), i, r)
              for i, r in enumerate(requests[-MOST_BARS:])]
    bars, lanes = [], 0
    for lane, (begin, end, _, r) in lanes_of(slices):
        lanes = max(lanes, lane + 1)
        title = "%s, wr_id 0x%x, %d octets: %s" % (r.name, r.wr_id, r.length, r.status_name or "under way")
        if r.where:
            title += "\nposted by " + r.where
        if r.peer:
            title += "\nat the other end: %s 0x%x of %s" % (r.peer.name, r.peer.wr_id, r.peer.process.name)
        bars.append({"l": lane, "b": (begin - start) / 1000, "e": (end - start) / 1000, "t": title,
                     "s": 1 if is_bad(r) else 0,
                     "p": [(n, (a - start) / 1000, (b - start) / 1000) for n, a, b in phases(r)]})
    return {"lanes": lanes, "bars": bars}


def views(queues_):
    """(all time, the part that is shown first): as many bars as the eye can separate."""
    bars = [b for q in queues_ for b in q["bars"]]
    begin, end = min((b["b"] for b in bars), default=0), max((b["e"] for b in bars), default=0)
    shown = [max(b["e"] for b in q["bars"][:FIRST_BARS]) for q in queues_]
    return [begin, max(end, begin + 1)], [begin, max(min(shown, default=0), begin + 1)]


def queues(story):
    sections, data = [], []
    for process in story.processes:
        by_qp = {}
        for request in process.requests:
            if request.qpn:
                by_qp.setdefault((request.qpn, request.is_receive), []).append(request)
        for (qpn, is_receive), requests in sorted(by_qp.items()):
            more = " The latest %d are drawn." % MOST_BARS if len(requests) > MOST_BARS else ""
            sections.append('<h3>%s, QP 0x%x: %d %s.%s</h3><div class="bars" data-qp="%d"></div>' % (
                esc(process.name), qpn, len(requests), "receives" if is_receive else "requests", more, len(data)))
            data.append(bars_of(story, process, requests))
    return "".join(sections), data


def write(story, out):
    sections, data = queues(story)
    key = "".join('<span><i style="background:%s"></i>%s</span>' % (c, esc(n)) for n, c in COLOURS)
    everything, first = views(data)
    embedded = json.dumps({"qps": data, "colours": COLOURS, "all": everything, "view": first}, separators=(",", ":"))
    # No end of the element, whatever a record says.
    embedded = embedded.replace("<", "\\u003c")
    out.write("<!doctype html><html lang=en><meta charset=utf-8><title>weft-trace</title>"
              '<meta name=viewport content="width=device-width">'
              "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
              "script-src 'unsafe-inline'\"><style>%s</style><h1>What happened</h1>%s"
              "<h2>Requests</h2><p class=note>A bar is a request, from its post to its poll. The wheel zooms, dragging "
              "moves, a double click shows all of the time.</p><p class=key>%s</p>%s"
              "<h2>Who waited for whom</h2><p class=note>The longest first.</p>%s"
              "<h2>From post to completion</h2>%s<h2>Errors</h2>%s<div id=tip></div>"
              '<script type="application/json" id=data>%s</script><script>%s</script></html>\n' % (
                  STYLE, processes(story), key, sections or "<p class=note>None was recorded.</p>", waits(story),
                  latencies(story), errors(story), embedded, SCRIPT))
