// What a shadow found.
import { html } from './vendor/htm-preact-3.1.1.js';
import { now, useAnswer, useNow } from './state.js';
import { opener } from './table.js';
import { brief, count, prose } from './words.js';

const LISTS = [['missed', 'Missed'], ['twice', 'Twice'], ['differs', 'Differs'], ['listed', 'Differs as documented'], ['worst', 'Latest starts']];
const NAMED = 15;

function List({ report, name, title, state, change }) {
  const entries = report[name];
  const total = entries.length + (report.more[name] ?? 0);
  return html`<section class=${`list ${name}`}>
    <h3>${title} <b>${total.toLocaleString('en-US')}</b></h3>
    ${total === 0 && html`<p class="quiet">none</p>`}
    <ul>${entries.slice(0, NAMED).map((one) => html`<li><a ...${opener(state, change, `${one.namespace}/${one.name}`)}><span class="namespace">${one.namespace}/</span><bdi>${one.name}</bdi></a>
      <small>${one.slot ? `${brief(Date.parse(one.slot), state.zone)}: ` : ''}${prose(one.why, state.zone)}</small></li>`)}</ul>
    ${total > NAMED && html`<p class="quiet">and ${(total - Math.min(entries.length, NAMED)).toLocaleString('en-US')} more</p>`}
  </section>`;
}

const late = ({ p50, p99, max }) => `p50 ${p50} s, p99 ${p99} s, max ${max} s`;

function Report({ report, state, change }) {
  const { slots, same, agreement, apart, hottest } = report;
  const number = (value) => value.toLocaleString('en-US');
  return html`<section class="last-night" aria-label="Shadow">
    <h2>Shadow <small>${brief(Date.parse(report.since), state.zone)} to ${brief(Date.parse(report.until), state.zone)}</small></h2>
    <p><b>${report.verdict}</b></p>
    <p>${count(slots, 'slot')} of ${count(report.cronJobs, 'CronJob')} compared, ${number(same)} the same${agreement === undefined ? '' : ` (${agreement} %)`}${report.notSeen > 0 ? `, ${number(report.notSeen)} not seen` : ''}.
      ${apart.slots > 0 && ` ${count(apart.slots, 'slot')} of CronJobs with annotations that the controller in charge does not read, ${number(apart.same)} the same.`}</p>
    <p>Lateness of the controller in charge: ${late(report.late)}. This controller was ready to send: ${late(report.own)}; each create would still have to be answered.</p>
    ${hottest.length > 0 && html`<p>The fullest minutes: ${hottest.slice(0, 5).map((hot, i) => `${i > 0 ? ', ' : ''}${brief(Date.parse(hot.minute), state.zone)} with ${count(hot.slots, 'start')}, the latest ${hot.max} s`)}.</p>`}
    <div class="lists">${LISTS.map(([name, title]) => html`<${List} key=${name} name=${name} title=${title} report=${report} state=${state} change=${change} />`)}</div>
  </section>`;
}

export function Shadow({ state, change }) {
  useNow(5000);
  // The file is read again from time to time.
  const { value, error } = useAnswer('shadow', {}, Math.floor(now() / 10e3));
  return html`<div class="view-night whole">
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${value && html`<${Report} report=${value} state=${state} change=${change} />`}
  </div>`;
}
