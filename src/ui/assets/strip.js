// The newest slots of a CronJob as cells: what is above the line has run, and how high it is says for how long.
import { html, useRef, useState } from './vendor/htm-preact-3.1.1.js';
import { REASONS, count, inZone, moment, sentence, stretch } from './words.js';

const [WIDTH, HEIGHT, LINE] = [7, 24, 22];
// So many cells a row has at most; the newest one is always at the same place.
const MOST = 20;

// What a cell says, and its class. Each kind has a shape of its own, so that it can be told without its colour.
function kind({ fate, run, reason }) {
  if (fate === 'started') return [run, run === 'gone' ? 'ran, and its Job is gone' : run];
  const why = REASONS[reason];
  return [fate, why && why !== fate ? `${fate} (${why})` : fate];
}

function Mark({ cell, i, longest }) {
  const x = i * WIDTH + 1;
  const [name] = kind(cell);
  const share = cell.took === null || longest === 0 ? 0 : Math.sqrt(cell.took / longest);
  const high = 6 + Math.round(share * 14);
  switch (name) {
    case 'succeeded': return html`<rect x=${x} y=${LINE - high} width="5" height=${high} />`;
    case 'failed': return html`<path d=${`M${x + 0.5} ${LINE - high}l4 ${high}M${x + 4.5} ${LINE - high}l-4 ${high}`} />`;
    case 'running': return html`<rect x=${x + 0.75} y=${LINE - high} width="3.5" height=${high} />`;
    case 'gone': return html`<rect x=${x} y=${LINE - 3} width="5" height="3" />`;
    // As in `list`: a ring, an exclamation mark, two bars and a star.
    case 'skipped': return html`<circle cx=${x + 2.5} cy=${LINE - 6} r="2.5" />`;
    case 'missed': return html`<path d=${`M${x + 2.5} ${LINE - 12}v7M${x + 2.5} ${LINE - 3}v2`} />`;
    case 'suspended': return html`<path d=${`M${x + 1.5} ${LINE - 10}v8M${x + 3.5} ${LINE - 10}v8`} />`;
    case 'frozen': return html`<path d=${`M${x + 2.5} ${LINE - 10}v8M${x + 0.5} ${LINE - 8}l4 4M${x + 4.5} ${LINE - 8}l-4 4`} />`;
    case 'due': return html`<path d=${`M${x + 1} ${LINE - 10}l3 4l-3 4`} />`;
    case 'held': return html`<path d=${`M${x + 0.5} ${LINE - 8}h4.5M${x + 0.5} ${LINE - 4}h4.5`} />`;
    case 'unknown': return html`<circle class="dot" cx=${x + 2.5} cy=${LINE - 2} r="1" />`;
    default: return html`<path d=${`M${x + 0.5} ${LINE - 9}h4l-2 4 2 4h-4l2 -4z`} />`;
  }
}

// What became of a slot, in words.
const describe = (cell, zone) => `${moment(Date.parse(cell.slot), zone)}: ${kind(cell)[1]}${cell.took ? `, ${stretch(cell.took * 1000)}` : ''}. ${inZone(sentence(cell.why), zone)}`;

const longestOf = (cells) => Math.max(0, ...cells.map((cell) => cell.took ?? 0));

// The same cells as buttons: arrows move, and what became of the slot is below.
export function Cells({ cells, zone, open }) {
  const [focus, setFocus] = useState(null);
  const [over, setOver] = useState(null);
  const all = useRef();
  if (cells.length === 0) return html`<p class="quiet">No slot has come yet.</p>`;
  const last = cells.length - 1;
  const at = Math.min(focus ?? last, last);
  const move = (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all.current.children[Math.min(Math.max(to, 0), last)].focus();
  };
  return html`<div class="cells" role="toolbar" aria-label=${`The last ${count(cells.length, 'slot')}; arrows move`} ref=${all} onKeyDown=${move} onMouseLeave=${() => setOver(null)}>
    ${cells.map((cell, i) => html`<button type="button" key=${cell.slot} tabindex=${i === at ? 0 : -1} class=${i === (over ?? at) ? 'told' : ''} aria-label=${describe(cell, zone)}
      onFocus=${() => { setFocus(i); setOver(null); }} onMouseEnter=${() => setOver(i)} onClick=${() => cell.job && open(cell.job)}>
      <svg class=${`cell-of ${kind(cell)[0]}`} aria-hidden="true" width=${WIDTH} height=${HEIGHT}><${Mark} cell=${cell} i=${0} longest=${longestOf(cells)} /></svg></button>`)}
  </div>
  <p class="slot-told" aria-hidden="true">${describe(cells[Math.min(over ?? at, last)], zone)}</p>`;
}

export function Strip({ cells, zone, open }) {
  if (cells.length === 0) return html`<span class="quiet">no slot yet</span>`;
  const longest = longestOf(cells);
  const counts = new Map();
  for (const cell of cells) counts.set(kind(cell)[1], (counts.get(kind(cell)[1]) ?? 0) + 1);
  const label = `the last ${cells.length} slots: ${[...counts].map(([what, number]) => `${number} ${what}`).join(', ')}; the newest, ${describe(cells.at(-1), zone)}`;
  return html`<svg class="strip-of" role="img" aria-label=${label} width=${MOST * WIDTH} height=${HEIGHT}>
    ${cells.map((cell, at) => {
    const i = at + MOST - cells.length;
    const [name] = kind(cell);
    const title = describe(cell, zone);
    return html`<g class=${`cell-of ${name} ${cell.job ? 'job' : ''}`} onClick=${cell.job ? (event) => { event.stopPropagation(); open(cell.job); } : undefined}>
      <title>${title}</title><rect class="hit" x=${i * WIDTH} y="0" width=${WIDTH} height=${HEIGHT} /><${Mark} cell=${cell} i=${i} longest=${longest} /></g>`;
  })}</svg>`;
}
