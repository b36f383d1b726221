// The command that prints the log of a CronJob's last run, by a key.
import { get } from './state.js';

const HEARD = 'copied';

// Tells the page what was copied; `app.js` shows it.
export function say(text) {
  dispatchEvent(new CustomEvent(HEARD, { detail: text }));
}

export function onSaid(hear) {
  const listen = ({ detail }) => hear(detail);
  addEventListener(HEARD, listen);
  return () => removeEventListener(HEARD, listen);
}

export async function copyLogs({ namespace, name }) {
  try {
    const { why } = await get('cronjob', { namespace, name });
    if (!why.logs) return say(`No Job of ${name} exists, so there is no log.`);
    await navigator.clipboard.writeText(why.logs);
    return say(`Copied: ${why.logs}`);
  } catch (error) {
    return say(`Not copied: ${error.message}`);
  }
}
