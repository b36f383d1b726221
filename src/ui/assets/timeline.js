// Past and expected runs on a line of time.
import { html } from './vendor/htm-preact-3.1.1.js';
import { SPANS as HOURS, now, selection, useNow } from './state.js';
import { opener } from './table.js';
import { VirtualList } from './virtual.js';
import { REASONS, RESULTS, clock, count, date, kind, moment, offset, stretch } from './words.js';

const HOUR = 3600e3;
const SPANS = Object.fromEntries(Object.entries(HOURS).map(([name, hours]) => [name, hours * HOUR]));
const STEPS = [5 * 60e3, 10 * 60e3, 30 * 60e3, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 72 * HOUR];

function Axis({ from, to, zone }) {
  const step = STEPS.find((one) => (to - from) / one <= 12) ?? 168 * HOUR;
  // Ticks are at round times of the zone.
  const shift = offset(from, zone);
  const ticks = [];
  for (let at = Math.ceil((from + shift) / step) * step - shift; at <= to; at += step) ticks.push(at);
  const text = (at) => (step >= 12 * HOUR ? date(at, zone) : clock(at, zone));
  return html`<div class="head row line" role="row" aria-rowindex="1"><div class="cell name" role="columnheader">CronJob <small class="zone">${zone}</small></div>
    <div class="cell time" role="columnheader" aria-label=${`from ${moment(from, zone)} to ${moment(to, zone)}`}>
      ${ticks.map((at) => html`<span class="tick" style=${{ left: `${(100 * (at - from)) / (to - from)}%` }}>${text(at)}</span>`)}
    </div></div>`;
}

// Marks that are closer than they can be drawn, and say the same, are one.
function grouped(marks, gap) {
  const groups = [];
  for (const mark of marks) {
    const last = groups.at(-1);
    if (last && mark.at - last.to < gap && mark.fate === last.fate && mark.reason === last.reason && mark.run === last.run) {
      last.to = mark.at;
      last.count += 1;
    } else groups.push({ ...mark, from: mark.at, to: mark.at, count: 1 });
  }
  return groups;
}

// A sign for each fate of a slot without a Job, so that they can be told without colour.
const FATES = { skipped: '○', missed: '!', suspended: '‖', frozen: '❄', due: '›', waits: '~', held: '=', unknown: '?' };

function Marks({ line, from, to, zone, at }) {
  const share = (time) => (100 * time) / (to - from);
  const x = (time) => `${share(time - from).toFixed(3)}%`;
  const timed = (marks) => grouped(marks.filter((mark) => mark.at >= from && mark.at <= to), (to - from) / 150);
  const when = (group) => (group.count === 1 ? moment(group.from, zone) : `${moment(group.from, zone)} to ${moment(group.to, zone)}`);
  // Jobs are above, slots without a Job below.
  const runs = line.runs.map((run) => {
    const start = Date.parse(run.start);
    const end = run.end ? Date.parse(run.end) : run.result === 'running' ? at : start;
    const [left, right] = [Math.max(start, from), Math.min(Math.max(end, start), to)];
    const title = `${run.job}${kind(run)}: ${RESULTS[run.result][1]}, ${moment(start, zone)}${run.end ? `, took ${stretch(end - start)}` : ''}`;
    const width = `max(5px, ${share(right - left).toFixed(3)}%)`;
    // The sign of a failure takes more room than a short bar.
    const isSign = run.result === 'failed' && share(right - left) < 2;
    return html`<g class=${`run ${run.result} ${run.slot ? '' : 'manual'}`}><title>${title}</title>
      ${!isSign && html`<rect x=${x(left)} y=${run.slot ? 5 : 3} height=${run.slot ? 16 : 20} rx="2" style=${{ width }} />`}
      ${run.result === 'failed' && html`<text x=${x(left)} y="18" dx=${isSign ? -5 : 2}>✖</text>`}</g>`;
  });
  const slots = timed(line.slots.map((mark) => ({ ...mark, at: Date.parse(mark.due) }))).map((group) => {
    // A run whose Job is gone is known, and for how long it ran is not.
    const fate = group.run ? `run ${group.run}` : group.fate;
    const what = group.count === 1 ? group.fate : `${count(group.count, 'slot')} ${group.fate}`;
    if (group.run) {
      return html`<g class=${`past ${fate}`}><title>${`${what}, ${when(group)}: ${group.why}`}</title>
        <rect x=${x(group.from)} y="9" height="8" rx="2" style=${{ width: `max(4px, ${share(group.to - group.from).toFixed(3)}%)` }} />
        ${group.run === 'failed' && html`<text x=${x(group.from)} y="18" dx="-4">✖</text>`}</g>`;
    }
    return html`<g class=${`slot ${group.fate}`}><title>${`${what}${REASONS[group.reason] && REASONS[group.reason] !== group.fate ? ` (${REASONS[group.reason]})` : ''}, ${when(group)}: ${group.why}`}</title>
      ${group.count > 1 && html`<line x1=${x(group.from)} x2=${x(group.to)} y1="34" y2="34" />`}
      <text x=${x(group.from)} y="32" text-anchor=${group.count > 1 ? 'start' : 'middle'}>${FATES[group.fate]}</text></g>`;
  });
  const expected = line.expected.map((group) => ({ from: Date.parse(group.from), to: Date.parse(group.to) })).map((group) => html`
    <g class="expected"><title>${`expected, ${moment(group.from, zone)}${group.to > group.from ? ` to ${moment(group.to, zone)}` : ''}`}</title>
      <line x1=${x(group.from)} x2=${x(group.from)} y1="7" y2="19" />
      ${group.to > group.from && html`<line class="range" x1=${x(group.from)} x2=${x(group.to)} y1="13" y2="13" />`}</g>`);
  const of = (result) => line.runs.filter((run) => run.result === result).length;
  const label = `${of('succeeded')} succeeded, ${of('failed')} failed, ${of('running')} running, ${of('waiting')} waiting, ${count(line.slots.filter((slot) => slot.fate === 'started').length, 'run')} whose Job is gone, ${count(line.slots.filter((slot) => slot.fate !== 'started').length, 'slot')} not started, ${line.expected.length > 0 ? 'more' : 'none'} expected`;
  return html`<svg class="marks" role="img" aria-label=${label} width="100%" height="36">
    ${at >= from && at <= to && html`<line class="now" x1=${x(at)} x2=${x(at)} y1="0" y2="36" />`}${expected}${slots}${runs}</svg>`;
}

export function Timeline({ state, change, version }) {
  useNow(5000);
  const span = SPANS[state.span] ?? SPANS['6h'];
  const at = now();
  // Live, a quarter of the line is ahead. It moves in steps, so that not every second asks anew.
  const step = Math.max(span / 240, 10e3);
  const to = state.at ? Date.parse(state.at) : Math.ceil((at + span / 4) / step) * step;
  const from = to - span;
  const iso = (time) => new Date(time).toISOString();
  const move = (by) => change({ at: iso(to + by * span) });
  const zoom = (by) => {
    const names = Object.keys(SPANS);
    const next = names[Math.min(Math.max(names.indexOf(state.span) + by, 0), names.length - 1)];
    change({ span: next, at: state.at && iso(Date.parse(state.at) - span / 2 + SPANS[next] / 2) });
  };
  const keys = (event) => {
    const does = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), '+': () => zoom(-1), '-': () => zoom(1) }[event.key];
    if (does && event.target.tagName !== 'INPUT' && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); does(); }
  };
  const render = (line) => html`
    <div class="cell name" role="gridcell"><a tabindex="-1" ...${opener(state, change, `${line.namespace}/${line.name}`)}><span class="namespace">${line.namespace}/</span><bdi>${line.name}</bdi></a>
      ${line.cut && html`<small title="Zoom in to see all slots.">older slots are not shown</small>`}</div>
    <div class="cell time" role="gridcell"><${Marks} line=${line} from=${from} to=${to} zone=${state.zone} at=${at} /></div>`;
  return html`<div class="view-timeline" onKeyDown=${keys}>
    <div class="controls">
      <button type="button" onClick=${() => move(-0.5)} aria-label="Earlier">◀</button>
      <span role="group" aria-label="Zoom">${Object.keys(SPANS).map((name) => html`<button type="button" aria-pressed=${state.span === name} onClick=${() => change({ span: name })}>${name}</button>`)}</span>
      <button type="button" onClick=${() => move(0.5)} aria-label="Later">▶</button>
      <button type="button" aria-pressed=${!state.at} onClick=${() => change({ at: '' })}>Now</button>
      <span class="legend"><i class="key succeeded"></i>succeeded <i class="key failed">✖</i>failed <i class="key running"></i>running <i class="key manual"></i>manual or backfill
        <i class="key gone"></i>Job is gone <i class="key expected"></i>expected ${Object.entries(FATES).map(([fate, sign]) => html`<i class=${`key ${fate}`}>${sign}</i>${fate === 'unknown' ? 'not known' : fate} `)}</span>
    </div>
    <${VirtualList} path="timeline" params=${{ ...selection(state), from: iso(from), to: iso(to) }} version=${version} height=${38} chunk=${20} label="Timeline" place=${JSON.stringify(selection(state))} isOpen=${!!state.cj}
      header=${html`<${Axis} from=${from} to=${to} zone=${state.zone} />`} render=${render} onOpen=${(line) => change({ cj: `${line.namespace}/${line.name}` })} />
  </div>`;
}
