// What the policies of a CronJob change: its next slots without and with them.
import { html } from './vendor/htm-preact-3.1.1.js';
import { brief, count, inZone, moment, prose } from './words.js';

// A shape and a word for each change.
const CHANGES = { same: ['|', 'as without'], added: ['+', 'added'], moved: ['▸', 'moved'], dropped: ['✕', 'dropped'], held: ['○', 'held'] };

function Lane({ title, marks, effect, y, zone }) {
  const [from, to] = [Date.parse(effect.from), Date.parse(effect.to)];
  const x = (at) => `${(2 + (96 * (Date.parse(at) - from)) / Math.max(to - from, 1)).toFixed(2)}%`;
  return html`<text class="lane" x="0" y=${y - 14}>${title}</text><line x1="0" x2="100%" y1=${y + 3} y2=${y + 3} />
    ${marks.map(({ due, change, why }) => html`<g class=${`lane-mark ${change}`}><title>${`${moment(Date.parse(due), zone)}: ${CHANGES[change][1]}${why ? `, ${inZone(why, zone)}` : ''}`}</title>
      <text x=${x(due)} y=${y} text-anchor="middle">${CHANGES[change][0]}</text></g>`)}`;
}

export function Lanes({ effect, zone }) {
  const { without, with: own, changes } = effect;
  // The reasons, each with how many slots it concerns.
  const reasons = new Map();
  for (const { change, why } of [...own, ...without.filter((mark) => mark.change === 'dropped')]) {
    if (change !== 'same') reasons.set(`${change}|${why}`, (reasons.get(`${change}|${why}`) ?? 0) + 1);
  }
  const words = Object.entries(changes).filter(([, number]) => number > 0).map(([change, number]) => `${number} ${CHANGES[change][1]}`).join(', ');
  return html`<h3>What its policies change</h3>
    <p class="changes">${count(Object.values(changes).reduce((a, b) => a + b, 0), 'slot')} until ${brief(Date.parse(effect.to), zone)}: ${words}.</p>
    <svg class="lanes" role="img" aria-label=${`The next slots without and with the policies: ${words}`} width="100%" height="86">
      <${Lane} title="without" marks=${without} effect=${effect} y=${30} zone=${zone} /><${Lane} title="with" marks=${own} effect=${effect} y=${74} zone=${zone} /></svg>
    <ul class="reasons">${[...reasons].slice(0, 8).map(([key, number]) => {
    const [change, ...why] = key.split('|');
    return html`<li><b aria-hidden="true">${CHANGES[change][0]}</b> ${number} ${CHANGES[change][1]}: ${prose(why.join('|'), zone)}</li>`;
  })}</ul>`;
}
