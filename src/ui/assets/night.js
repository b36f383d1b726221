// Last night and the next hour.
import { html } from './vendor/htm-preact-3.1.1.js';
import { now, selection, useAnswer, useNow } from './state.js';
import { opener } from './table.js';
import { brief, clock, count, isoDay, prose } from './words.js';

// The lists, and what each says if it is empty.
const LISTS = [['failed', 'Failed'], ['missed', 'Missed'], ['neverRan', 'Never ran'], ['late', 'Late'], ['skipped', 'Skipped'], ['stopped', 'Suspended or frozen'], ['longest', 'Longest runs']];
const NAMED = 8;

const Name = ({ of, state, change }) => html`<a ...${opener(state, change, `${of.namespace}/${of.name}`)}><span class="namespace">${of.namespace}/</span><bdi>${of.name}</bdi></a>`;

function List({ part, name, title, state, change }) {
  const more = part.total - part.entries.length;
  return html`<section class=${`list ${name}`}>
    <h3>${title} ${name === 'longest' ? '' : html`<b>${part.total}</b>`}</h3>
    ${part.total === 0 && html`<p class="quiet">none</p>`}
    <ul>${part.entries.map((one) => html`<li key=${`${one.namespace}/${one.name}`}><${Name} of=${one} state=${state} change=${change} />
      <small>${one.slots > 1 ? `${one.slots} slots, the last ` : ''}${brief(Date.parse(one.at), state.zone)}: ${prose(one.why, state.zone)}</small></li>`)}</ul>
    ${more > 0 && name !== 'longest' && html`<p class="quiet">and ${more} more</p>`}
  </section>`;
}

function LastNight({ value, state, change }) {
  const { slots, started, unknown, cut } = value;
  return html`<section class="last-night" aria-label="Last night">
    <h2>Last night <small>${brief(Date.parse(value.from), state.zone)} to ${brief(Date.parse(value.to), state.zone)}, ${value.timeZone}</small></h2>
    <p>${count(slots, 'slot')} of ${count(value.cronJobCount, 'CronJob')}: <b>${started.toLocaleString('en-US')}</b> started${unknown > 0 ? `, ${unknown.toLocaleString('en-US')} not known any more` : ''}.
      ${cut > 0 && ` Of ${count(cut, 'CronJob')}, only the newest slots are counted.`}</p>
    <div class="lists">${LISTS.map(([name, title]) => html`<${List} key=${name} name=${name} title=${title} part=${value[name]} state=${state} change=${change} />`)}</div>
  </section>`;
}

const isHeld = (run) => run.will !== 'start';
const starting = ({ slots, held, unknown }) => slots - held - unknown;

// A bar for each minute; the part that is held, or may be, is hollow.
function Bars({ value, state }) {
  const from = Math.floor(Date.parse(value.from) / 60e3);
  const most = Math.max(1, ...value.minutes.map((minute) => minute.slots));
  const bars = value.minutes.map((minute) => {
    const x = Math.floor(Date.parse(minute.at) / 60e3) - from;
    const high = (number) => (40 * number) / most;
    const starts = starting(minute);
    const open = minute.slots - starts;
    return html`<g><title>${`${clock(Date.parse(minute.at), state.zone)}: ${count(minute.slots, 'slot')}${minute.held ? `, ${minute.held} held` : ''}${minute.unknown ? `, ${minute.unknown} not known` : ''}`}</title>
      <rect class="starts" x=${x * 10 + 1} width="8" y=${44 - high(starts)} height=${high(starts)} />
      ${open > 0 && html`<rect class="held" x=${x * 10 + 1.75} width="6.5" y=${44.75 - high(minute.slots)} height=${Math.max(high(open) - 1.5, 1)} />`}</g>`;
  });
  return html`<svg class="bars" role="img" aria-label=${`Slots in each minute of the next hour, at most ${most}`} viewBox="0 0 610 46" preserveAspectRatio="none">${bars}<line x1="0" x2="610" y1="45" y2="45" /></svg>`;
}

function held(run, zone) {
  if (run.will === 'skip') return 'skipped';
  if (run.will === 'unknown') return 'not known';
  return run.starts ? `held until ${clock(Date.parse(run.starts), zone)}` : 'held';
}

// The slots of a CronJob that are held in the same way, as `list --next-hour` has them.
function holds(minutes, zone) {
  const all = new Map();
  for (const minute of minutes) {
    for (const run of minute.runs.filter(isHeld)) {
      const how = `${held(run, zone)}: ${run.why}`;
      const key = `${run.namespace}/${run.name} ${how}`;
      const known = all.get(key) ?? { run, how, from: minute.at, slots: 0 };
      all.set(key, { ...known, to: minute.at, slots: known.slots + 1 });
    }
  }
  return [...all.values()];
}

function NextHour({ value, state, change }) {
  const fullest = value.minutes.filter((minute) => starting(minute) > 1).sort((a, b) => starting(b) - starting(a)).slice(0, 5);
  const stopped = Object.entries(value.stopped).map(([what, number]) => `${number} ${what}`).join(', ');
  const all = holds(value.minutes, state.zone);
  const show = (at) => ({ onClick: () => change({ view: 'heat', day: isoDay(at, state.zone), minute: new Date(at).toISOString(), show: 'starts' }) });
  return html`<section class="next-hour" aria-label="The next hour">
    <h2>The next hour <small>${clock(Date.parse(value.from), state.zone)} to ${clock(Date.parse(value.to), state.zone)}, ${value.timeZone}</small></h2>
    <p>${count(value.slots, 'slot')} of ${count(value.cronJobCount, 'CronJob')}${value.held > 0 ? html`, <b class="hold">${value.held}</b> held or skipped` : ''}${value.unknown > 0 ? html`, <b>${value.unknown}</b> not known` : ''}.
      ${fullest.length > 0 && html` The fullest minutes: ${fullest.map((minute, i) => html`${i > 0 && ', '}<button type="button" class="copy" ...${show(Date.parse(minute.at))}>${clock(Date.parse(minute.at), state.zone)} with ${starting(minute)}</button>`)}.`}
      ${stopped && ` Not running now: ${stopped}.`}</p>
    <${Bars} value=${value} state=${state} />
    <ol class="minutes">${value.minutes.map((minute) => {
    const begins = minute.runs.filter((run) => !isHeld(run));
    const more = starting(minute) - Math.min(begins.length, NAMED);
    const begin = all.filter((hold) => hold.from === minute.at);
    return (more > 0 || begins.length > 0 || begin.length > 0) && html`<li key=${minute.at}><b>${clock(Date.parse(minute.at), state.zone)}</b> <span class="number">${minute.slots}</span>
      <div>${begins.slice(0, NAMED).map((run, i) => html`${i > 0 && ', '}<${Name} of=${run} state=${state} change=${change} />`)}${more > 0 && html`${begins.length > 0 && ' and '}<button type="button" class="copy" ...${show(Date.parse(minute.at))}>${more} more</button>`}
      ${begin.map(({ run, how, to, slots }) => html`<p class="hold"><span aria-hidden="true">■</span> <${Name} of=${run} state=${state} change=${change} /> ${prose(how, state.zone)}${slots > 1 ? ` (${count(slots, 'slot')} until ${clock(Date.parse(to), state.zone)})` : ''}</p>`)}</div></li>`;
  })}</ol>
    ${value.minutes.length === 0 && html`<p class="quiet">Nothing is due.</p>`}
  </section>`;
}

export function Night({ state, change }) {
  useNow(5000);
  // What is known of the past changes slowly, and of 10,000 CronJobs it is much.
  const minute = Math.floor(now() / 60e3);
  const params = { ...selection(state), sort: '', reverse: '', zone: state.zone };
  const night = useAnswer('night', params, minute);
  const hour = useAnswer('next-hour', params, minute);
  const error = night.error ?? hour.error;
  return html`<div class="view-night" aria-busy=${night.isOld || hour.isOld}>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${night.value && html`<${LastNight} value=${night.value} state=${state} change=${change} />`}
    ${hour.value && html`<${NextHour} value=${hour.value} state=${state} change=${change} />`}
  </div>`;
}
