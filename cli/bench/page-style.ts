/**
 * The style of the `rdma-rpc bench` report. The style is light or dark like the reader's system, and has a
 * single column on narrow screens. page.ts uses this file.
 */

export const style = `
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1c2430; --muted: #66707f; --line: #e3e7ed;
  --raw: #2f6fde; --corrected: #e07b1f; --third: #2c9d78; --bad: #cc3340; --shade: #2f6fde22; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161c; --card: #1b2129; --text: #e4e8ee; --muted: #97a2b1; --line: #2c3440;
    --raw: #6ba1ff; --corrected: #ffa453; --third: #52c9a0; --bad: #ff6b76; --shade: #6ba1ff22; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
header, main { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 22px; margin: 0; overflow-wrap: anywhere; }
header p { margin: 4px 0 18px; color: var(--muted); }
h2 { font-size: 15px; margin: 0 0 10px; }
h3 { font-size: 13px; margin: 14px 0 6px; color: var(--muted); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; }
.tile, section, aside { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: 12px 14px; display: flex; flex-direction: column; }
.tile b { font-size: 22px; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile span { color: var(--muted); }
.tile small { color: var(--muted); font-size: 12px; min-height: 1.4em; }
.tile.bad b { color: var(--bad); }
aside { margin-top: 14px; padding: 10px 14px; border-left: 4px solid var(--corrected); }
aside p { margin: 2px 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 14px; margin: 14px 0 40px; }
section { padding: 14px 16px; min-width: 0; }
section.wide { grid-column: 1 / -1; }
.plot { min-height: 300px; }
.u-legend { text-align: left !important; font-variant-numeric: tabular-nums; }
.u-legend .u-value { min-width: 5em; display: inline-block; text-align: left; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
section > table td, section > table th { padding: 4px 8px; border-bottom: 1px solid var(--line); text-align: right; }
section > table th:first-child { text-align: left; }
section > table tr:first-child th { color: var(--muted); font-weight: 600; }
section > table .text { text-align: left; overflow-wrap: anywhere; width: 70%; }
.stack { display: flex; height: 18px; border-radius: 4px; overflow: hidden; background: var(--line); }
.stack i { min-width: 2px; }
i.raw { background: var(--raw); } i.corrected { background: var(--corrected); } i.third { background: var(--third); }
.key { margin: 6px 0 0; display: flex; flex-wrap: wrap; gap: 4px 18px; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.note { color: var(--muted); font-size: 13px; margin: 14px 0 0; }
@media print { body { background: none; } section, .tile { break-inside: avoid; } }
`;
