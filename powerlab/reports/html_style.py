"""The style sheet of reports: light and dark pages, phones, and paper."""

from __future__ import annotations

from powerlab.reports.figures.palette import DARK, LIGHT, css_variables
from powerlab.reports.figures.svg import FONT

STYLE = f"""
:root {{ color-scheme: light dark; {css_variables(LIGHT)} --good: #1a7f37; --tied: #8a6100; --code: #f3f5f7; }}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ {css_variables(DARK)} --good: #4ac26b; --tied: #d4a72c; --code: #232931; }}
}}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.55 {FONT}; color: var(--ink); background: var(--surface); margin: 0 auto; max-width: 78rem;
  padding: 1.5rem clamp(1rem, 4vw, 3rem) 3rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.75rem; line-height: 1.2; margin: 0; }}
h2 {{ font-size: 1.2rem; margin: 2.4rem 0 .7rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }}
h3 {{ font-size: 1rem; margin: 0; }}
header p {{ color: var(--muted); margin: .3rem 0 .8rem; }}
nav ul {{ display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; padding: 0; margin: 0; }}
a {{ color: var(--series-0); }}
main p, main li {{ max-width: 52rem; }}
.answers {{ display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); }}
.answer {{ border: 1px solid var(--line); border-left: 4px solid var(--muted); border-radius: 6px;
  padding: .8rem 1rem; }}
.answer p {{ margin: .25rem 0 0; }} .answer .value {{ font-size: 1.45rem; font-weight: 600; line-height: 1.3; }}
.answer small {{ font-size: .85rem; font-weight: 400; color: var(--muted); }}
.badge {{ font-size: .8rem; font-weight: 600; color: var(--muted); border: 1px solid currentColor; border-radius: 1rem;
  padding: .05rem .55rem; margin-left: .3rem; white-space: nowrap; }}
.winner {{ border-left-color: var(--good); }} .winner .badge {{ color: var(--good); }}
.tied {{ border-left-color: var(--tied); }} .tied .badge {{ color: var(--tied); }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .88rem; }}
.caption {{ color: var(--muted); font-size: .92rem; margin: 1.2rem 0 .4rem; }}
th, td {{ text-align: left; padding: .35rem .55rem; border-bottom: 1px solid var(--grid); vertical-align: top; }}
thead th {{ border-bottom-color: var(--line); vertical-align: bottom; }}
th small {{ display: block; font-weight: 400; color: var(--muted); }}
.num {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
.none {{ color: var(--muted); }}
.pictures {{ display: grid; gap: 1.8rem 2.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  align-items: start; }}
figure {{ margin: 0; min-width: 0; }} figcaption {{ color: var(--muted); font-size: .88rem; margin-top: .4rem; }}
.drawing {{ overflow-x: auto; margin-top: .6rem; }}
.drawing svg {{ display: block; width: 100%; min-width: 26rem; max-width: 44rem; height: auto; }}
.facts {{ margin: 0; }}
.facts div {{ display: grid; grid-template-columns: 11rem minmax(0, 1fr); gap: .2rem 1rem; padding: .35rem 0;
  border-bottom: 1px solid var(--grid); }}
dt {{ color: var(--muted); }} dd {{ margin: 0; }}
pre {{ background: var(--code); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; font-size: .88rem;
  line-height: 1.45; }}
code {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .92em; }}
footer {{ margin-top: 3rem; color: var(--muted); font-size: .88rem; }}
:focus-visible {{ outline: 2px solid var(--series-0); outline-offset: 2px; }}
@media (max-width: 36rem) {{ .facts div {{ grid-template-columns: 1fr; gap: 0; }} }}
@media print {{
  @page {{ size: A4; margin: 16mm 14mm; }}
  body {{ font-size: 10pt; padding: 0; max-width: none; }} nav {{ display: none; }}
  h2 {{ break-after: avoid; }} figure, .answer, tr {{ break-inside: avoid; }} thead {{ display: table-header-group; }}
  .scroll, .drawing, pre {{ overflow: visible; }} pre {{ white-space: pre-wrap; }}
  table {{ font-size: 8.5pt; }} th, td {{ padding: .2rem .4rem; }}
  .answers {{ grid-template-columns: repeat(3, 1fr); }} .answer .value {{ font-size: 1.15rem; }}
  .pictures {{ grid-template-columns: 1fr 1fr; gap: 1rem; }} .drawing svg {{ min-width: 0; }}
}}
"""
