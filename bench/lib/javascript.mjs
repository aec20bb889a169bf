// node bench/lib/javascript.mjs JOB: the package in Node, as peers/browser.mjs has it in pages.

import { root } from '../../tests/lib/run.mjs';
import { speedsOf } from './in-javascript.mjs';

const job = JSON.parse(process.argv[2]);
const { prefill, decode } = await speedsOf({ ...job, source: root + job.path,
  sunnynet: `${root}build/npm-package/sunnynet.mjs` });
console.log(JSON.stringify({ [`decode ${job.decode}`]: decode,
  [`prefill ${job.prefill}`]: prefill }));
