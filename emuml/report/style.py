"""The one style sheet of pages and figures, for light and dark screens, wide and narrow ones."""

FIGURE = """
svg { --ink: #1c2430; --faint: #d5dbe3; --c0: #0068a8; --c1: #c44e00; --c2: #00805d; --c3: #a3378a; --c4: #6b5b00;
  --c5: #4a5568; --off: #aab4c0; --bad: #c4162a; --back: #fff; font: 11.5px system-ui, sans-serif; }
@media screen and (prefers-color-scheme: dark) {
  svg { --ink: #e3e8ef; --faint: #333d49; --c0: #5cb8f2; --c1: #ff9a52; --c2: #45d6a8; --c3: #ea8fd0; --c4: #d8c64a;
    --c5: #a7b3c4; --off: #5b6775; --bad: #ff6b78; --back: #12171d; } }
text { fill: var(--ink); } .end { text-anchor: end; } .middle { text-anchor: middle; } .small { font-size: 9px; }
.grid { stroke: var(--faint); } .axis { stroke: var(--ink); } .halo { stroke: var(--back); stroke-width: 4; }
.mean { stroke: var(--ink); stroke-width: 1.5; }
.mark { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 5 3; } .close { stroke: var(--ink); stroke-width: .7; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.line.s0 { stroke: var(--c0); } .line.s1 { stroke: var(--c1); stroke-dasharray: 7 3; }
.line.s2 { stroke: var(--c2); stroke-dasharray: 2 3; } .line.s3 { stroke: var(--c3); stroke-dasharray: 9 3 2 3; }
.line.s4 { stroke: var(--c4); stroke-dasharray: 4 2; } .line.s5 { stroke: var(--c5); stroke-dasharray: 1 2; }
.bar.s0 { fill: var(--c0); } .bar.s1 { fill: var(--c1); } .bar.s2 { fill: var(--c2); } .bar.s3 { fill: var(--c3); }
.dot.s0 { fill: var(--c0); } .dot.s1 { fill: var(--c1); } .dot.s2 { fill: var(--c2); } .dot.s3 { fill: var(--c3); }
.dot.s4 { fill: var(--c4); } .dot.s5 { fill: var(--c5); }
.line.wide { stroke-width: 4; stroke-opacity: .6; } .line.thin { stroke-width: 1; }
.line.halo { stroke-width: 5; } .line.theory { stroke: var(--ink); stroke-width: 1.4; }
.line.band-key { stroke: var(--ink); stroke-opacity: .18; stroke-width: 10; }
.band { fill: var(--ink); fill-opacity: .18; }
.bar.bad { fill: var(--bad); } .bar.s4 { fill: var(--c4); } .bar.s5 { fill: var(--c5); }
.computed { fill: var(--c0); } .late, .cancelled { fill: var(--off); } .lost, .down { fill: var(--bad); }
"""

PAGE = """
:root { color-scheme: light dark; --paper: #fff; --text: #1c2430; --soft: #5a6675; --rule: #d5dbe3; --panel: #f6f8fa;
  --warn: #c4162a; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #12171d; --text: #e3e8ef; --soft: #a3afbd; --rule: #333d49; --panel: #1a2129;
    --warn: #ff6b78; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 16px; background: var(--paper); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; } h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
p { margin: .25rem 0 .75rem; max-width: 75ch; overflow-wrap: anywhere; }
.warning { border-left: 4px solid var(--warn); padding: .1rem 0 .1rem .7rem; font-weight: 600; }
.note { color: var(--soft); font-size: .9rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 8px 32px;
  align-items: start; } .full { grid-column: 1 / -1; }
figure svg[role="img"] { display: block; width: 100%; max-width: 560px; height: auto; }
.scroll { overflow-x: auto; margin: .5rem 0; } figure .scroll > svg[role="img"] { min-width: 680px; max-width: none; }
figure { margin: 0; min-width: 0; } figcaption { font-weight: 600; font-size: .95rem; margin: .5rem 0 .25rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: .9rem; padding: .25rem 0; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
thead th { color: var(--soft); } tbody th { font-weight: 600; }
td { overflow-wrap: break-word; min-width: 6rem; }
pre, code { font: .85rem/1.45 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 4px; padding: .6rem .8rem;
  overflow-x: auto; }
details { margin: .5rem 0; } summary { cursor: pointer; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .5rem 0;
  font-size: .9rem; } .legend svg { width: 26px; height: 12px; margin-right: .4rem; vertical-align: middle; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; margin: .5rem 0; }
a { color: inherit; } code { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid; outline-offset: 2px; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  svg, .bar { print-color-adjust: exact; -webkit-print-color-adjust: exact; } figure, tr { break-inside: avoid; }
  h2, h3, figcaption { break-after: avoid; }
  .scroll, pre { overflow: visible; } figure .scroll > svg[role="img"] { min-width: 0; }
  .beside { grid-template-columns: 1fr 1fr; gap: 8px 16px; }
  table { font-size: 8pt; } td { min-width: 0; } tbody th { min-width: 5.5rem; }
  th, td { overflow-wrap: anywhere; padding-right: .4rem; }
  pre { white-space: pre-wrap; } details:not([open]) { display: none; } }
"""
