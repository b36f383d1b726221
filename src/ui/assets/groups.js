// The CronJobs by namespace, image or label, with counts. A click selects a group, and another one all of them.
import { html } from './vendor/htm-preact-3.1.1.js';
import { selection, useAnswer } from './state.js';
import { STATES, count } from './words.js';

// What is marked in a group.
const MARKED = ['overdue', 'stuck', 'blocked', 'failed', 'growing', 'frozen'];

// The name of what selects a group, and what its groups are called.
export const filterOf = (group) => (group.startsWith('label:') ? ['label', group.slice(6)] : [group, group]);

export function GroupBy({ state, change, labelKeys }) {
  const kinds = [['', 'nothing'], ['namespace', 'namespace'], ['image', 'image'], ...labelKeys.map((key) => [`label:${key}`, `label ${key}`])];
  if (!kinds.some(([kind]) => kind === state.group)) kinds.push([state.group, filterOf(state.group).join(' ')]);
  return html`<label>Group by <select value=${state.group} onChange=${(event) => change({ group: event.target.value })}>
    ${kinds.map(([kind, name]) => html`<option value=${kind} selected=${kind === state.group}>${name}</option>`)}</select></label>
    ${['label', 'image'].filter((name) => state[name]).map((name) => html`<button type="button" class="chosen-filter" onClick=${() => change({ [name]: '' })} aria-label=${`Remove the filter ${name} ${state[name]}`}>
      ${name} <bdi>${state[name]}</bdi> ✕</button>`)}`;
}

export function Groups({ state, change, version }) {
  const { value, error } = useAnswer('groups', { ...selection(state), sort: '', reverse: '', by: state.group }, version);
  const [name, what] = filterOf(state.group);
  if (error) return html`<p class="error" role="alert">${error}</p>`;
  if (!value) return null;
  return html`<section class="groups" aria-label=${`Groups by ${what}`}>
    ${value.groups.map(({ value: of, filter, cronJobs, states }) => html`<button type="button" key=${filter} aria-pressed=${state[name] === filter} onClick=${() => change({ [name]: state[name] === filter ? '' : filter })}>
      <bdi>${of === '' ? '(empty)' : of ?? `without ${what}`}</bdi> <span title=${count(cronJobs, 'CronJob')}>${cronJobs.toLocaleString('en-US')}</span>
      ${MARKED.filter((state) => states[state] > 0).map((state) => html` <span class=${`state ${state}`} title=${`${states[state]} ${STATES[state][1]}`}>${STATES[state][0]} ${states[state]}</span>`)}</button>`)}
    ${value.groups.length < value.total && html`<span class="quiet">and ${value.total - value.groups.length} more</span>`}
  </section>`;
}
