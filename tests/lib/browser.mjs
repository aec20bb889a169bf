// Chromium, driven by playwright-core.

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { root } from './run.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/* SN_CHROMIUM, else what is on PATH. */
function findChromium() {
  if (process.env.SN_CHROMIUM) return process.env.SN_CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((path) => existsSync(path));
  if (!found)
    throw new Error('there is no Chromium here: tools/install-deps.sh (or apt-get install ' +
      'chromium) brings it; SN_CHROMIUM names another');
  return found;
}

/* The container that tests run in is the sandbox, and nothing may call home. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** Starts it with a profile of its own. */
export async function launch() {
  const executablePath = findChromium();
  const { chromium } = await import(`${root}build/npm/node_modules/playwright-core/index.mjs`);
  return chromium.launch({ executablePath, args: FLAGS, headless: true });
}
