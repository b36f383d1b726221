// The starts in each minute of a day, or the Jobs that run in it.
import { h, html, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { SPREADS, now, selection, useAnswer, useNow } from './state.js';
import { opener } from './table.js';
import { Copy, clock, count, isoDay, moment, wholeDay } from './words.js';

const two = (number) => String(number).padStart(2, '0');
// The same number has the same colour on every day, in every zone, with and without what-if: each step is twice as many.
const STEPS = [1, 2, 4, 8, 16, 32, 64, 128];
const level = (starts) => STEPS.filter((step) => starts >= step).length;

// What is counted.
const NOUNS = { starts: 'start', jobs: 'running Job' };

function Grid({ day, noun, at: present, chosen, choose }) {
  const [focus, setFocus] = useState([0, 0]);
  const grid = useRef();
  const move = (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      event.target.click();
    }
    if (!step) return;
    event.preventDefault();
    const hour = Math.min(Math.max(focus[0] + step[0], 0), day.hours.length - 1);
    const minute = Math.min(Math.max(focus[1] + step[1], 0), day.hours[hour].minutes.length - 1);
    setFocus([hour, minute]);
    grid.current.querySelector(`[data-cell="${hour}:${minute}"]`)?.focus();
  };
  const twice = (hour, i) => day.hours.some((other, j) => j !== i && other.number === hour.number);
  return h('div', { class: 'heat', role: 'grid', ref: grid, onKeyDown: move, 'aria-label': `${noun === 'start' ? 'Starts' : 'Running Jobs'} in each minute of ${wholeDay(day.date)}, ${day.timeZone}` },
    h('div', { class: 'hour scale', 'aria-hidden': 'true' }, h('span', { class: 'label' }),
      [0, 10, 20, 30, 40, 50].map((minute) => h('span', { class: 'minute' }, `:${two(minute)}`))),
    day.hours.map((hour, i) => h('div', { class: 'hour', role: 'row', key: hour.start },
      h('span', { class: 'label', role: 'rowheader' }, two(hour.number), twice(hour, i) && h('small', null, ` ${hour.offset}`)),
      hour.firstMinute > 0 && h('span', { class: 'gap', style: { gridColumn: `span ${hour.firstMinute}` } }),
      hour.minutes.map((starts, j) => {
        const at = new Date(Date.parse(hour.start) + j * 60000).toISOString();
        const isNow = Date.parse(at) === present;
        const text = `${two(hour.number)}:${two(hour.firstMinute + j)}${isNow ? ', now' : ''}, ${count(starts, noun)}`;
        return h('span', {
          class: `c l${level(starts)}${at === chosen ? ' chosen' : ''}${isNow ? ' now' : ''}`, role: 'gridcell', title: text, 'aria-label': text,
          'data-cell': `${i}:${j}`, 'data-starts': starts, tabindex: focus[0] === i && focus[1] === j ? 0 : -1,
          onClick: () => { setFocus([i, j]); choose(at); },
        });
      }))));
}

function Minute({ state, change, version }) {
  const { value, error } = useAnswer('minute', { ...selection(state), at: state.minute, spread: state.spread, show: state.show }, version);
  if (error) return html`<p class="error" role="alert">${error}</p>`;
  if (!value) return null;
  return html`<section class="minute-list" aria-label="CronJobs of the minute">
    <h2>${count(value.total, 'CronJob')} at ${moment(Date.parse(state.minute), state.zone)}
      <button type="button" class="copy" onClick=${() => change({ minute: '' })}>Close</button></h2>
    <ul>${value.rows.map((row) => html`<li key=${`${row.namespace}/${row.name}`}><a ...${opener(state, change, `${row.namespace}/${row.name}`)}>
      <span class="namespace">${row.namespace}/</span><bdi>${row.name}</bdi></a> <small>${clock(Date.parse(row.due), state.zone)} · ${row.schedule}</small></li>`)}</ul>
    ${value.rows.length < value.total && html`<p class="quiet">The first ${value.rows.length} of them.</p>`}
  </section>`;
}

function WhatIf({ value, spread }) {
  if (!value?.whatIf) return null;
  const { mostNow, patch, commands } = value.whatIf;
  return html`<section class="what-if" aria-label="The change">
    <p>With <code>spread: ${spread}</code>, at most <b>${value.most}</b> in one minute; as things are, <b>${mostNow}</b>.</p>
    <div class="code"><pre tabindex="0" aria-label="The patch">${patch}</pre><${Copy} text=${patch} label="Copy the patch" /></div>
    ${commands.map((command) => html`<div class="code command" key=${command}><pre tabindex="0" aria-label="A command that makes the change">${command}</pre><${Copy} text=${command} /></div>`)}
  </section>`;
}

// The five minutes with the most starts, in the order of the day.
function fullest(day) {
  const all = day.hours.flatMap((hour) => hour.minutes.map((starts, j) => ({ at: Date.parse(hour.start) + j * 60e3, starts })));
  const most = all.filter(({ starts }) => starts > 0).sort((a, b) => b.starts - a.starts || a.at - b.at).slice(0, 5);
  return most.sort((a, b) => a.at - b.at);
}

export function Heat({ state, change, version }) {
  useNow(5000);
  const present = Math.floor(now() / 60e3) * 60e3;
  const today = isoDay(present, state.zone);
  const day = state.day || today;
  const { value, error, isOld } = useAnswer('heat', { ...selection(state), day, zone: state.zone, spread: state.spread }, version);
  const step = (days) => {
    const next = new Date(`${day}T12:00:00Z`);
    next.setUTCDate(next.getUTCDate() + days);
    change({ day: next.toISOString().slice(0, 10), minute: '' });
  };
  return html`<div class="view-heat" aria-busy=${isOld}>
    <div class="controls">
      <button type="button" onClick=${() => step(-1)} aria-label="The day before">◀</button>
      <label>Day <input type="date" value=${day} onChange=${(event) => event.target.value && change({ day: event.target.value, minute: '' })} /></label>
      <button type="button" onClick=${() => step(1)} aria-label="The day after">▶</button>
      <span role="group" aria-label="What is counted">${[['starts', 'Starts'], ['jobs', 'Running Jobs']].map(([name, title]) => html`<button type="button" aria-pressed=${state.show === name} onClick=${() => change({ show: name })}>${title}</button>`)}</span>
      <label class="slider">What if everything here had
        <input type="range" min="0" max=${SPREADS.length - 1} value=${Math.max(SPREADS.indexOf(state.spread), 0)} aria-valuetext=${state.spread || 'its own spread'}
          onInput=${(event) => change({ spread: SPREADS[event.target.value] })} />
        <output>${state.spread ? `spread: ${state.spread}` : 'its own spread'}</output></label>
    </div>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${value && html`
      <p class="lead"><b>${wholeDay(value.date)}</b>${value.date === today ? ', today' : ''}: ${state.show === 'jobs' ? '' : `${count(value.starts, 'start')} of `}${count(value.cronJobs, 'CronJob')}; at most <b>${value.most}</b> ${state.show === 'jobs' ? 'Jobs run ' : ''}in one minute${value.mostAt ? `, at ${clock(Date.parse(value.mostAt), state.zone)}` : ''}.
        ${value.withoutLength > 0 && ` Of ${count(value.withoutLength, 'CronJob')} no run has succeeded whose Job still exists: each counts in the minute of its start.`}</p>
      ${value.starts > 0 && html`<p class="lead">The fullest minutes: ${fullest(value).map(({ at, starts }, i) => html`${i > 0 && ', '}<button type="button" class="copy" onClick=${() => change({ minute: new Date(at).toISOString() })}>${clock(at, state.zone)} with ${starts}</button>`)}.</p>`}
      <div class="map"><${Grid} day=${value} noun=${NOUNS[state.show]} at=${present} chosen=${state.minute && new Date(state.minute).toISOString()} choose=${(minute) => change({ minute })} />
        ${state.minute && html`<${Minute} state=${state} change=${change} version=${version} />`}</div>
      <p class="legend">${state.show === 'jobs' ? 'Jobs that run in a minute, by the median of those before' : 'Starts in a minute'}: <span class="c l0"></span> 0 ${STEPS.map((step, i) => html`<span class=${`c l${i + 1}`}></span> ${step}${i < STEPS.length - 1 ? (STEPS[i + 1] > step + 1 ? `–${STEPS[i + 1] - 1}` : '') : ' and more'} `)}${value.date === today && html`<span class="c now"></span> now, ${clock(present, state.zone)}`}</p>
      <${WhatIf} value=${value} spread=${state.spread} />`}
  </div>`;
}
