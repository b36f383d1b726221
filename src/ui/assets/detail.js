// All about one CronJob.
import { html, useEffect, useRef } from './vendor/htm-preact-3.1.1.js';
import { useAnswer, useNow } from './state.js';
import { Chips } from './table.js';
import { Copy, RESULTS, count, kind, moment, parseName, relative, stretch, stateOf } from './words.js';

const Time = ({ at, zone }) => {
  const [weekday, date, ...clock] = moment(at, zone).split(' ');
  return html`<time datetime=${new Date(at).toISOString()}><span>${weekday} ${date}</span> <span>${clock.join(' ')}</span></time>`;
};

function NextRuns({ next, zone }) {
  const runs = next.runs.map((run) => ({ ...run, at: Date.parse(run.slot) }));
  const left = (next.leftOut ?? []).map((slot) => ({ ...slot, at: Date.parse(slot.slot) }));
  const rows = [...runs, ...left].sort((a, b) => a.at - b.at);
  return html`<h3>Next runs</h3>
    ${next.problem && html`<p class="error">${next.problem}</p>`}
    ${next.notes.map((note) => html`<p>${note}</p>`)}
    <table class="plain next-runs"><thead><tr><th scope="col">Slot</th><th scope="col">Due</th><th scope="col">What a policy or the clock changes</th></tr></thead>
      <tbody>${rows.map((run) => html`<tr class=${run.annotation ? 'left-out' : 'due'}>
        <td><${Time} at=${run.at} zone=${zone} /></td><td>${run.due ? html`<${Time} at=${Date.parse(run.due)} zone=${zone} />` : '–'}</td>
        <td>${run.annotation ? `left out by ${run.annotation}` : [run.due && Date.parse(run.due) !== run.at && `spread: ${stretch(Date.parse(run.due) - run.at)} later`, run.note].filter(Boolean).join('; ')}</td></tr>`)}
      </tbody></table>
    ${next.ends && !next.problem && html`<p class="quiet">No further run follows within five years.</p>`}`;
}

function History({ jobs, slots, zone, now }) {
  return html`<h3>Jobs</h3>
    ${jobs.length === 0 ? html`<p class="quiet">No Job exists.</p>` : html`<table class="plain"><thead><tr><th scope="col">Job</th><th scope="col">Result</th><th scope="col">Started</th><th scope="col">Took</th></tr></thead>
      <tbody>${[...jobs].reverse().map((run) => html`<tr key=${run.job}><td><bdi>${run.job}</bdi>${kind(run)}</td>
        <td class=${`result ${run.result}`}>${RESULTS[run.result].join(' ')}</td><td><${Time} at=${Date.parse(run.start)} zone=${zone} /></td>
        <td>${run.end ? stretch(Date.parse(run.end) - Date.parse(run.start)) : run.result === 'running' ? stretch(now - Date.parse(run.start)) : ''}</td></tr>`)}</tbody></table>`}
    <h3>Slots of the last two days</h3>
    ${slots.slots.length === 0 ? html`<p class="quiet">No slot was due.</p>` : html`<table class="plain"><thead><tr><th scope="col">Slot</th><th scope="col">Fate</th><th scope="col">Why</th></tr></thead>
      <tbody>${[...slots.slots].reverse().slice(0, 100).map((slot) => html`<tr><td><${Time} at=${Date.parse(slot.from)} zone=${zone} />${slot.count > 1 && html` to <${Time} at=${Date.parse(slot.to)} zone=${zone} /> (${count(slot.count, 'slot')})`}</td>
        <td>${slot.fate}</td><td>${slot.why}</td></tr>`)}</tbody></table>`}`;
}

function Code({ text, label, kind = '' }) {
  return html`<div class=${`code ${kind}`}><pre tabindex="0" aria-label=${label}>${text}</pre><${Copy} text=${text} /></div>`;
}

export function Detail({ state, change, version }) {
  const now = useNow();
  const panel = useRef();
  const { namespace, name } = parseName(state.cj);
  const { value, error } = useAnswer('cronjob', { namespace, name }, version);
  useEffect(() => { panel.current?.focus(); }, [state.cj]);
  const { explanation: told, row } = value ?? {};
  const isIt = told?.name === name && told?.namespace === namespace;
  return html`<aside class="detail" role="dialog" aria-label=${`CronJob ${state.cj}`} tabindex="-1" ref=${panel}>
    <button type="button" class="close" onClick=${() => change({ cj: '' })} aria-label="Close">✕</button>
    <h2><span class="namespace">${namespace}/</span><bdi>${name}</bdi></h2>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${isIt && html`
      ${row && html`<p class=${`state ${row.urgency}`}>${stateOf(row).join(' ')} <${Chips} policies=${row.policies} /></p>`}
      <p class="summary">${told.summary}</p>
      <p><code>${told.schedule}</code>${told.timeZone ? ` in ${told.timeZone}` : ''}${row?.words ? `: ${row.words}` : ''}</p>
      ${told.nextRun && html`<p>Next: ${relative(Date.parse(told.nextRun.time), now)} it ${told.nextRun.effect}.</p>`}
      ${told.notes.map((note) => html`<p>${note}</p>`)}
      <${NextRuns} next=${value.next} zone=${state.zone} />
      <${History} jobs=${value.jobs} slots=${value.slots} zone=${state.zone} now=${now} />
      <h3>Events</h3>
      ${value.events.length === 0 ? html`<p class="quiet">No Event exists.</p>` : html`<ul class="events">${value.events.slice(0, 50).map((event) => html`<li>
        <small><${Time} at=${Date.parse(event.time)} zone=${state.zone} />${event.count > 1 ? `, ${event.count} times` : ''}</small> <b>${event.reason}</b> ${event.message}</li>`)}</ul>`}
      <h3>Commands to copy</h3>
      <p class="quiet">This page runs nothing.</p>
      ${value.commands.map(({ what, command }) => html`<p class="what">${what}</p>${command && html`<${Code} text=${command} label=${what} kind="command" />`}`)}
      <h3>YAML</h3>
      ${value.yaml.Ok === undefined ? html`<p class="error">${value.yaml.Err}</p>` : html`<${Code} text=${value.yaml.Ok} label="The CronJob as YAML" />`}
    `}
  </aside>`;
}
