// SPDX-License-Identifier: Apache-2.0
// The style sheet of the HTML report: light, dark and on paper; from 320 pixels of width up.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_REPORT_STYLE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_REPORT_STYLE_H_

#include <string_view>

namespace hallmark {

inline constexpr std::string_view kReportStyle = R"css(
:root{color-scheme:light dark;--paper:#fbfaf8;--card:#fff;--ink:#1d2126;--soft:#59626d;
--line:#dcdfe3;--good:#17693a;--warn:#8a5300;--bad:#b3261e;--note:#3c5a86;--mark:#2f6690;
--band:#cfe0ee}
@media(prefers-color-scheme:dark){:root{--paper:#14171a;--card:#1c2025;--ink:#e7e9ec;
--soft:#a3abb5;--line:#343a42;--good:#6fce95;--warn:#f0b357;--bad:#ff8f85;--note:#9dbcf0;
--mark:#7db8e8;--band:#2b4258}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
main{max-width:54rem;margin:0 auto;padding:1.25rem 1rem 3rem}
h1{font-size:2rem;line-height:1.15;margin:0 0 .5rem}
h2{font-size:1.3rem;margin:2.25rem 0 .75rem}
h3{font-size:1.1rem;margin:0 0 .75rem;text-transform:capitalize}
h4{font-size:.95rem;margin:1.1rem 0 .4rem}
p{margin:.35rem 0}
code{font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.brand{color:var(--soft);margin:0 0 1rem;font-size:.9rem}
.verdict{background:var(--card);border:1px solid var(--line);border-left:.5rem solid var(--tone);
border-radius:.5rem;padding:1.1rem 1.25rem}
.verdict h1{color:var(--tone)}
.accepted{--tone:var(--good)}.rejected,.error{--tone:var(--bad)}
.undecided,.warning{--tone:var(--warn)}.note{--tone:var(--note)}.unrun{--tone:var(--soft)}
.steps{list-style:none;display:flex;flex-wrap:wrap;gap:.5rem;padding:0;margin:1rem 0 0}
.steps li{border:1px solid var(--line);border-radius:1rem;padding:.1rem .75rem;font-size:.9rem}
.steps b{color:var(--tone);font-weight:600}
article,.step{background:var(--card);border:1px solid var(--line);border-radius:.5rem;
padding:.9rem 1.1rem;margin:0 0 .75rem}
article{border-left:.3rem solid var(--tone)}
article header{display:flex;flex-wrap:wrap;gap:.15rem .75rem;align-items:baseline}
.severity{color:var(--tone);font-weight:600}
.check{font-weight:600}.clause,.place,.soft{color:var(--soft);font-size:.9rem}
.place span{display:inline-block;margin-right:.75rem}
dl{margin:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:0 1.5rem}
dl div{display:flex;justify-content:space-between;gap:1rem;border-bottom:1px solid var(--line);
padding:.25rem 0}
dt{color:var(--soft)}dd{margin:0;text-align:right}
.n{font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;overflow-wrap:normal}
th,td{padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line);text-align:left;
white-space:nowrap}
thead th{color:var(--soft);font-weight:500}tbody th{font-weight:400}
td.n{text-align:right}
summary{cursor:pointer;padding:.4rem 0;color:var(--mark)}
figure{margin:0 0 1rem}figcaption{color:var(--soft);font-size:.9rem}
svg{display:block;width:100%;max-width:34rem;height:auto}
svg text{fill:var(--soft);font:14px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.bar,.mark{fill:var(--mark)}.band{fill:var(--band)}
.out{stroke:var(--bad);stroke-width:2;fill:none}
footer{color:var(--soft);font-size:.85rem;margin-top:2.5rem}
@media print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb;--good:#17693a;
--warn:#8a5300;--bad:#b3261e;--note:#3c5a86;--mark:#2f6690;--band:#cfe0ee;color-scheme:light}
main{max-width:none;padding:0}article,figure,tr{break-inside:avoid}
details::details-content{content-visibility:visible;height:auto}
.scroll{overflow:visible}th,td{white-space:normal}}
)css";

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_REPORT_STYLE_H_
