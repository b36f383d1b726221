// The table of CronJobs.
import { html } from './vendor/htm-preact-3.1.1.js';
import { copyLogs } from './logs.js';
import { address, selection, useNow } from './state.js';
import { Strip } from './strip.js';
import { VirtualList } from './virtual.js';
import { REASONS, RESULTS, brief, clock, inZone, moment, prose, relative, sentence, stretch, stateOf } from './words.js';

// A column's name, its title in a wide window and beside the value on a phone, and what it sorts by.
const COLUMNS = [
  ['name', 'CronJob', 'name'], ['state', 'State', 'problems'], ['next', 'Next run', 'next'], ['last', 'Last run', 'last'],
  ['runs', 'Last 20 slots', null], ['late', 'Late, p50 / p99', 'lateness'], ['failures', 'Failures in a row', 'failures'],
  ['passed', 'Slots passed in 24 h', null], ['policies', 'Policies', null],
];
const TITLES = Object.fromEntries(COLUMNS.map(([name, title]) => [name, title]));

export function opener(state, change, cj) {
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    change({ cj, job: '' });
  };
  return { href: address({ ...state, cj, job: '' }), onClick: open };
}

function Header({ state, change }) {
  const sort = (by) => change(state.sort === by ? { reverse: state.reverse ? '' : '1' } : { sort: by, reverse: '' });
  const order = (by) => (state.sort !== by ? 'none' : state.reverse ? 'descending' : 'ascending');
  return html`<div class="head row" role="row" aria-rowindex="1">
    ${COLUMNS.map(([name, title, by]) => html`<div class=${`cell ${name}`} role="columnheader" aria-sort=${by ? order(by) : undefined}>
      ${by ? html`<button type="button" onClick=${() => sort(by)}>${title}${state.sort === by ? (state.reverse ? ' ↑' : ' ↓') : ''}</button>` : title}
      ${name === 'next' && html`<small class="zone">${state.zone}</small>`}
    </div>`)}
  </div>`;
}

export const Sign = ({ of: [sign, word] }) => html`<span class="sign" aria-hidden="true">${sign}</span> ${word}`;

function Last({ last, now, zone }) {
  if (!last) return html`<span class="quiet">never</span>`;
  const started = last.started && Date.parse(last.started);
  const took = started && (last.ended ? Date.parse(last.ended) : last.result === 'running' ? now : null);
  return html`<span class=${`result ${last.result}`} title=${`${last.job}, ${moment(Date.parse(last.slot), zone)}`}><${Sign} of=${RESULTS[last.result]} /></span>
    <small>${relative(Date.parse(last.slot), now)}${took ? `, ${last.result === 'running' ? 'for' : 'took'} ${stretch(took - started)}` : ''}</small>`;
}

function Next({ next, held, now, zone }) {
  if (held) return html`<span>held</span><small>${held}</small>`;
  if (!next) return html`<span class="quiet">none</span>`;
  const [due, slot] = [Date.parse(next.due), Date.parse(next.slot)];
  return html`<span title=${next.effect}>${due > now ? relative(due, now) : 'now'}</span>
    <small title=${moment(due, zone)}>${brief(due, zone)}${due !== slot ? `, slot ${clock(slot, zone)}` : ''}</small>`;
}

// How long the newest run took that succeeded, beside the median of those that still exist.
const Took = ({ durations: { last, median, runs } }) => html`<small title=${`of ${runs} runs that succeeded`}>took ${stretch(last * 1000)},
  median ${stretch(median * 1000)}${median >= 1 && last >= 2 * median ? html` <b class="slower">${(last / median).toFixed(1)}×</b>` : ''}</small>`;

// Of a run whose Job and Events are gone, nothing tells whether it failed.
const Failures = ({ of: { failures, noSuccess } }) => html`<b class="failed">${failures}</b>${failures < (noSuccess?.slots ?? 0) && html`<small>at least</small>`}`;

export const Chips = ({ policies }) => policies.map(({ name, value }) =>
  html`<span class="chip" title=${value ? `${name}: ${value}` : name}>${name}${value && html` <b>${value}</b>`}</span>`);

export function Table({ state, change, version, phone }) {
  const now = useNow();
  const zone = state.zone;
  const cell = (name, content) => html`<div class=${`cell ${name}`} role="gridcell" data-label=${TITLES[name]}>${content}</div>`;
  const render = (row) => {
    const cj = `${row.namespace}/${row.name}`;
    return html`
    ${cell('name', html`<a tabindex="-1" ...${opener(state, change, cj)}><span class="namespace">${row.namespace}/</span><bdi>${row.name}</bdi></a>
      <small title=${row.words ?? ''}>${row.schedule}${row.timeZone ? ` in ${row.timeZone}` : ''}</small>`)}
    ${cell('state', html`<span class=${`state ${row.urgency}`}><${Sign} of=${[stateOf(row)[0], sentence(row.label)]} /></span>
      ${row.urgency === 'fine' ? html`<small class="cut" title=${row.summary}>${inZone(row.summary, zone)}</small>` : html`<small>${prose(row.summary, zone)}</small>`}`)}
    ${cell('next', html`<${Next} next=${row.next} held=${row.held} now=${now} zone=${zone} />`)}
    ${cell('last', html`<${Last} last=${row.last} now=${now} zone=${zone} />`)}
    ${cell('runs', html`<${Strip} cells=${row.strip} zone=${zone} open=${(job) => change({ cj, job })} />`)}
    ${cell('late', html`${row.lateness && html`<span title=${`of ${row.lateness.runs} runs`}>${stretch(row.lateness.p50 * 1000)} / ${stretch(row.lateness.p99 * 1000)}</span>`}
      ${row.durations && html`<${Took} durations=${row.durations} />`}`)}
    ${cell('failures', row.failures > 0 ? html`<${Failures} of=${row} />` : html`<span class="quiet">0</span>`)}
    ${cell('passed', row.passed.map(({ reason, slots }) => html`<span class="chip">${REASONS[reason]} <b>${slots.toLocaleString('en-US')}</b></span>`))}
    ${cell('policies', html`<${Chips} policies=${row.policies} />`)}`;
  };
  return html`<${VirtualList} path="cronjobs" params=${selection(state)} version=${version} height=${phone ? 190 : 46} isOpen=${!!state.cj}
    label="CronJobs" header=${html`<${Header} state=${state} change=${change} />`} render=${render}
    onOpen=${(row) => change({ cj: `${row.namespace}/${row.name}`, job: '' })} onLogs=${copyLogs} />`;
}
