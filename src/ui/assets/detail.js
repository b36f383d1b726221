// All about one CronJob.
import { html, useEffect, useRef } from './vendor/htm-preact-3.1.1.js';
import { Lanes } from './lanes.js';
import { useAnswer, useNow } from './state.js';
import { Cells } from './strip.js';
import { Chips } from './table.js';
import { Copy, RESULTS, count, kind, moment, parseName, pieces, prose, relative, sentence, stretch, stateOf } from './words.js';

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
        <td>${pieces(run.annotation ? `left out by ${run.annotation}` : [run.due && Date.parse(run.due) !== run.at && `spread: ${stretch(Date.parse(run.due) - run.at)} later`, run.note].filter(Boolean).join('; '))}</td></tr>`)}
      </tbody></table>
    ${next.ends && !next.problem && html`<p class="quiet">No further run follows within five years.</p>`}`;
}

// What an operator needs first: the cause, what failed in it, its log, and what ends the state.
function Why({ why, told, zone }) {
  const { failure, unfinished } = told;
  return html`<section class="why" aria-label="Why">
    <p class="summary">${prose(why.cause, zone)}</p>
    ${failure && html`
      ${failure.reason && html`<p><b>${failure.reason}</b> ${failure.message}</p>`}
      ${failure.containers.map((one) => html`<p>Container <b>${one.container}</b> of Pod <bdi>${one.pod}</bdi>: <b>${one.reason}</b>, exit code <b>${one.exitCode}</b></p>`)}
      ${failure.podsUnread ? html`<p>Its Pods cannot be read, so the container that failed is not known: ${failure.podsUnread}</p>` : failure.containers.length === 0 && html`<p class="quiet">None of its failed Pods exists any more.</p>`}`}
    ${unfinished && html`<p>${unfinished.job}: ${unfinished.why}</p><${Code} text=${unfinished.command} label="What shows more" kind="command" />`}
    ${why.logs && html`<p class="what">Its log (key <kbd>l</kbd>)</p><${Code} text=${why.logs} label="Its log" kind="command logs" />`}
    ${why.ends && html`<p class="what">${why.ends.what}</p><${Code} text=${why.ends.command} label=${why.ends.what} kind="command ends" />`}
    <p class="quiet">${told.summary.slice(0, told.summary.length - why.cause.length).replace('What follows holds', 'This holds')}</p>
  </section>`;
}

function History({ jobs, slots, zone, now, chosen }) {
  const row = useRef();
  useEffect(() => { row.current?.scrollIntoView({ block: 'center' }); }, [chosen]);
  return html`<h3>Jobs</h3>
    ${jobs.length === 0 ? html`<p class="quiet">No Job exists.</p>` : html`<table class="plain"><thead><tr><th scope="col">Job</th><th scope="col">Result</th><th scope="col">Started</th><th scope="col">Took</th></tr></thead>
      <tbody>${[...jobs].reverse().map((run) => html`<tr key=${run.job} ref=${run.job === chosen ? row : undefined} class=${run.job === chosen ? 'chosen' : ''}><td><bdi>${run.job}</bdi>${kind(run)}</td>
        <td class=${`result ${run.result}`}>${RESULTS[run.result].join(' ')}</td><td><${Time} at=${Date.parse(run.start)} zone=${zone} /></td>
        <td>${run.end ? stretch(Date.parse(run.end) - Date.parse(run.start)) : run.result === 'running' ? stretch(now - Date.parse(run.start)) : ''}</td></tr>`)}</tbody></table>`}
    <h3>Slots of the last two days</h3>
    ${slots.unreadEvents && html`<p class="error">The Events cannot be read, which tell of runs whose Jobs are gone: ${slots.unreadEvents}</p>`}
    ${slots.slots.length === 0 ? html`<p class="quiet">No slot was due.</p>` : html`<table class="plain"><thead><tr><th scope="col">Slot</th><th scope="col">Fate</th><th scope="col">Why</th></tr></thead>
      <tbody>${[...slots.slots].reverse().slice(0, 100).map((slot) => html`<tr><td><${Time} at=${Date.parse(slot.from)} zone=${zone} />${slot.count > 1 && html` to <${Time} at=${Date.parse(slot.to)} zone=${zone} /> (${count(slot.count, 'slot')})`}</td>
        <td>${slot.fate}</td><td>${prose(slot.why, zone)}</td></tr>`)}</tbody></table>`}`;
}

// What a Prometheus keeps of its runs, where `ui --prometheus` names one.
function Past({ namespace, name, now }) {
  const { value, error, isOld } = useAnswer('history', { namespace, name }, Math.floor(now / 300e3));
  const problem = error ?? value?.Err;
  if (isOld || (!problem && !value)) return '';
  const days = value?.Ok?.days ?? [];
  return html`<h3>Runs of the last 30 days, by Prometheus</h3>
    ${problem ? html`<p class="error">${sentence(problem)}.</p>` : days.length === 0 ? html`<p class="quiet">It knows of no run.</p>` : html`<table class="plain"><thead><tr><th scope="col">Day (UTC)</th><th scope="col">Runs</th><th scope="col">Failed</th><th scope="col">Took in the mean</th></tr></thead>
      <tbody>${[...days].reverse().map((day) => html`<tr key=${day.date}><td>${day.date}</td><td>${day.runs}</td>
        <td class=${day.failed > 0 ? 'result failed' : ''}>${`${day.failed} (${Math.round((100 * day.failed) / day.runs)} %)`}</td><td>${day.seconds === null ? '' : stretch(day.seconds * 1000)}</td></tr>`)}</tbody></table>`}`;
}

function Code({ text, label, kind = '' }) {
  return html`<div class=${`code ${kind}`}><pre tabindex="0" aria-label=${label}>${kind ? pieces(text) : text}</pre><${Copy} text=${text} /></div>`;
}

export function Detail({ state, change, version }) {
  const now = useNow();
  const panel = useRef();
  const { namespace, name } = parseName(state.cj);
  const { value, error: failed } = useAnswer('cronjob', { namespace, name }, version);
  const error = namespace ? failed : `The link has cj=${name}, and not cj=NAMESPACE/NAME.`;
  useEffect(() => { panel.current?.focus(); }, [state.cj]);
  const { explanation: told, row } = value ?? {};
  const isIt = told?.name === name && told?.namespace === namespace;
  return html`<aside class="detail" role="dialog" aria-label=${`CronJob ${state.cj}`} tabindex="-1" ref=${panel}>
    <button type="button" class="close" onClick=${() => change({ cj: '', job: '' })} aria-label="Close">✕</button>
    <h2><span class="namespace">${namespace}/</span><bdi>${name}</bdi></h2>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    ${isIt && html`
      ${row && html`<p class=${`state ${row.urgency}`}><span aria-hidden="true">${stateOf(row)[0]}</span> ${sentence(row.label)} <${Chips} policies=${row.policies} /></p>`}
      <${Why} why=${value.why} told=${told} zone=${state.zone} />
      <p><code>${told.schedule}</code>${told.timeZone ? ` in ${told.timeZone}` : ''}${row?.words ? `: ${row.words}` : ''}</p>
      ${told.nextRun && !row?.held && html`<p>Next: ${relative(Date.parse(told.nextRun.time), now)} it ${told.nextRun.effect}.</p>`}
      ${row?.held && html`<p>Held: it starts ${row.held}.</p>`}
      ${told.notes.map((note) => html`<p>${prose(note, state.zone)}</p>`)}
      ${value.effect && html`<${Lanes} effect=${value.effect} zone=${state.zone} />`}
      <${NextRuns} next=${value.next} zone=${state.zone} />
      ${value.strip && html`<h3>The last slots</h3><${Cells} cells=${value.strip} zone=${state.zone} open=${(job) => change({ job })} />`}
      <${History} jobs=${value.jobs} slots=${value.slots} zone=${state.zone} now=${now} chosen=${state.job} />
      <${Past} namespace=${namespace} name=${name} now=${now} />
      <h3>Events</h3>
      ${value.events.Ok === undefined ? html`<p class="error">${value.events.Err}</p>` : value.events.Ok.length === 0 ? html`<p class="quiet">No Event exists.</p>` : html`<ul class="events">${value.events.Ok.slice(0, 50).map((event) => html`<li>
        <small><${Time} at=${Date.parse(event.time)} zone=${state.zone} />${event.count > 1 ? `, ${event.count} times` : ''}</small> <b>${event.reason}</b> ${event.message}</li>`)}</ul>`}
      <h3>Commands to copy</h3>
      <p class="quiet">This page runs nothing.</p>
      ${value.commands.map(({ what, command }) => html`<p class="what">${what}</p>${command && html`<${Code} text=${command} label=${what} kind="command" />`}`)}
      <h3>YAML</h3>
      ${value.yaml.Ok === undefined ? html`<p class="error">${value.yaml.Err}</p>` : html`<${Code} text=${value.yaml.Ok} label="The CronJob as YAML" />`}
    `}
  </aside>`;
}
