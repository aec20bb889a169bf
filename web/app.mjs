// app.mjs: what the page shows. The model lives in worker.mjs; here are the form, the story and
// the words for whatever can happen.
//
// ?backend=wasm-relaxed|wasm128|scalar forces a back end, ?threads= a number of threads. ?prompt=
// &temp= &length= fill the form, and with &seed= the story is told as soon as the model is there:
// such a link is a story.

const $ = (id) => document.getElementById(id);
const parameters = new URLSearchParams(location.search);

// ---- words --------------------------------------------------------------------------------------

const count = (n) => n.toLocaleString('en');
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)}\u00a0MB`;

const BACKENDS = {
  'wasm-relaxed': 'WebAssembly with relaxed SIMD',
  wasm128: 'WebAssembly with SIMD',
  scalar: 'plain WebAssembly',
};

function engineName() {
  const brand = navigator.userAgentData?.brands.find(({ brand: name }) => name === 'Chromium');
  if (brand) return `Chromium ${brand.version}`;
  const [, name, version] = /(Firefox|Edg|Chrome)\/(\d+)/.exec(navigator.userAgent) ??
    /(Version)\/([\d.]+).*Safari/.exec(navigator.userAgent) ?? [];
  return name ? `${name.replace('Version', 'Safari')} ${version}` : 'unknown';
}

/* What happened and what can be done about it. */
function advise({ during, code, message }) {
  if (code === 'NOMEM' || /out of memory|could not allocate memory/i.test(message))
    return 'There is not enough memory for the model. Closing other tabs may help.';
  if (/HTTP status 404/.test(message))
    return 'A file was not found; the page needs its whole folder on the server.';
  if (code === 'IO') return 'The model could not be fetched; is the network there?';
  return during === 'tell' ? 'The story ended with an error.' : 'The model cannot be loaded.';
}

function explain(problem) {
  if (problem.code === 'ABORTED') return 'Loading was stopped.';
  return `${advise(problem)} (${problem.message})`;
}

const ENDS = {
  length: (tokens) => `${count(tokens)} tokens told.`,
  eos: (tokens) => `The story came to its own end after ${count(tokens)} tokens.`,
  abort: (tokens) => `Stopped after ${count(tokens)} tokens.`,
};

// ---- phases -------------------------------------------------------------------------------------

/* loading, ready, telling, stopping or failed: what can be done follows from it alone. */
let phase = 'loading';

function enter(next, words) {
  phase = next;
  document.body.dataset.phase = next;
  $('tell').disabled = next !== 'ready';
  $('again').disabled = next !== 'ready' || !last;
  $('stop').disabled = next !== 'loading' && next !== 'telling';
  $('loading').hidden = next !== 'loading';
  $('trouble').hidden = next !== 'failed';
  $('story').setAttribute('aria-busy', String(next === 'telling'));
  $('status').textContent = words;
}

function fail(problem) {
  $('trouble-text').textContent = explain(problem);
  enter('failed', '');
}

// ---- the story ----------------------------------------------------------------------------------

let last; // what was told last: { prompt, temperature, seed, maxTokens }
let told = { tokens: 0, milliseconds: 0 };
let page; // the text node that grows
let unwritten = '';
let frame = 0;

function write() {
  cancelAnimationFrame(frame);
  frame = 0;
  const story = $('story');
  const atEnd = story.scrollHeight - story.scrollTop - story.clientHeight < 40;
  page.appendData(unwritten);
  unwritten = '';
  $('tokens').textContent = count(told.tokens);
  if (told.tokens > 1 && told.milliseconds > 0)
    $('speed').textContent = count(Math.round((told.tokens - 1) * 1000 / told.milliseconds));
  if (atEnd) story.scrollTop = story.scrollHeight; // but let people read further up
}

/* Tokens come faster than frames: they are written together. */
function onText({ text, tokens, milliseconds }) {
  if (phase !== 'telling') return; // a few may be on their way when Stop is pressed
  unwritten += text;
  told = { tokens, milliseconds };
  frame ||= requestAnimationFrame(write);
}

function begin(story) {
  last = story;
  told = { tokens: 0, milliseconds: 0 };
  unwritten = '';
  page = document.createTextNode('');
  const prompt = document.createElement('span');
  prompt.className = 'prompt';
  prompt.textContent = story.prompt;
  $('story').replaceChildren(prompt, page);
  $('retell').hidden = true;
  enter('telling', `Telling, with seed ${story.seed}.`);
  worker.postMessage({ type: 'tell', ...story });
}

function stop() {
  if (phase !== 'telling' && phase !== 'loading') return;
  worker.postMessage({ type: 'stop' });
  if (phase !== 'telling') return;
  write();
  enter('stopping', 'Stopping.');
}

function onEnd({ reason }) {
  write();
  retell(last);
  enter('ready', `${ENDS[reason](told.tokens)} Seed ${last.seed}.`);
}

/* The same story elsewhere. */
function retell({ prompt, temperature, seed, maxTokens }) {
  const endless = maxTokens === Infinity;
  const query = new URLSearchParams({ prompt, temp: temperature, seed,
    length: endless ? 'endless' : maxTokens });
  $('link').href = `?${query}`;
  const quoted = `'${prompt.replaceAll("'", "'\\''")}'`;
  $('command').textContent = `sunnynet run --bos -p ${quoted} --temp ${temperature} ` +
    `--seed ${seed} -n ${endless ? -1 : maxTokens}`;
  $('retell').hidden = false;
}

// ---- the form -----------------------------------------------------------------------------------

const MAX_SEED = 2n ** 64n - 1n;

function seedOf(text) {
  if (!text) return crypto.getRandomValues(new Uint32Array(1))[0];
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

function lengthOf(text) {
  return text === 'endless' ? Infinity : Number(text);
}

function checkSeed() {
  const { value } = $('seed');
  const large = /^\d+$/.test(value) && BigInt(value) > MAX_SEED;
  $('seed').setCustomValidity(large ? `The largest seed is ${MAX_SEED}.` : '');
}

function tell() {
  checkSeed();
  if (phase !== 'ready' || !$('form').reportValidity()) return;
  begin({
    prompt: $('prompt').value,
    temperature: Number($('temperature').value),
    seed: seedOf($('seed').value),
    maxTokens: lengthOf($('length').value),
  });
}

/* A length that the list does not have becomes one of the list. */
function setLength(text) {
  if (text !== 'endless' && !/^[1-9]\d{0,5}$/.test(text)) return;
  const select = $('length');
  if (![...select.options].some(({ value }) => value === text))
    select.add(new Option(`${text} tokens`, text), 0);
  select.value = text;
}

function fillForm() {
  for (const [name, id] of [['prompt', 'prompt'], ['temp', 'temperature'], ['seed', 'seed']])
    if (parameters.has(name)) $(id).value = parameters.get(name);
  setLength(parameters.get('length') ?? '');
  showTemperature();
}

function showTemperature() {
  $('temperature-text').value = Number($('temperature').value).toFixed(1);
}

$('temperature').addEventListener('input', showTemperature);
$('seed').addEventListener('input', checkSeed);
$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  tell();
});
$('prompt').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $('form').requestSubmit($('tell').disabled ? null : $('tell'));
});
$('stop').addEventListener('click', stop);
$('again').addEventListener('click', () => begin(last));
$('retry').addEventListener('click', start);
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') stop();
});

// ---- loading ------------------------------------------------------------------------------------

function onProgress({ loaded, total }) {
  const progress = $('progress');
  if (total === null) {
    progress.removeAttribute('value');
    $('progress-text').textContent = `${megabytes(loaded)} so far`;
    return;
  }
  progress.value = loaded / total;
  const percent = Math.floor(100 * loaded / total);
  $('progress-text').textContent = `${megabytes(loaded)} of ${megabytes(total)}, ${percent} %`;
}

function onReady({ info }) {
  $('backend').textContent = info.backend;
  $('backend-text').textContent =
    `${BACKENDS[info.backend]}, ${count(info.threads)} thread${info.threads > 1 ? 's' : ''}`;
  $('state').textContent = `${count(info.stateBytes / 1024)} KiB`;
  $('model').textContent = info.name;
  $('model-text').textContent =
    `${(info.parameters / 1e6).toFixed(1)} million weights, ${megabytes(info.fileBytes)}`;
  const plain = info.backend === 'scalar' && !parameters.has('backend');
  enter('ready', plain ? 'Ready. This browser has no WebAssembly SIMD, so the plain build ' +
    'runs: the same story, several times slower.' : 'Ready.');
  if (parameters.get('seed')) tell();
}

function onProof({ error, line, hash, wanted, rows }) {
  const show = (result, text, more = '') => {
    $('proof').dataset.result = result;
    $('proof-text').replaceChildren(...text);
    $('proof-more').textContent = more;
  };
  const code = (text) => Object.assign(document.createElement('code'), { textContent: text });
  if (error) return show('none', [`The check could not be made: ${error}.`]);
  if (!hash)
    return show('none', ['Not checked: a browser computes SHA-256 only on pages that come by ' +
      'https or from this machine. On every other target the hash is ', code(wanted), '.']);
  const where = `SHA-256 of the scores after each of ${rows} fixed tokens, computed here just ` +
    `now. Ledger: “${line}”.`;
  if (hash === wanted)
    return show('equal', ['The same bits as every other target: ', code(hash)], where);
  return show('different', ['Other bits than every other target: ', code(hash), ' instead of ',
    code(wanted), '. That is a bug; please report it with the name of your browser.'], where);
}

/* Files that are missing and browsers that know no module workers end up here. */
function onWorkerError(event) {
  event.preventDefault();
  fail({ during: 'load', code: null, message: event.message ||
    'the worker does not start. Its files may be missing on the server, or this browser may ' +
    'be too old for module workers' });
}

const HANDLERS = { progress: onProgress, ready: onReady, proof: onProof, text: onText, end: onEnd,
  failed: fail };

let worker;

function start() {
  worker?.terminate();
  enter('loading', 'Loading the model.');
  $('progress').removeAttribute('value');
  $('progress-text').textContent = '';
  worker = new Worker(new URL('./worker.mjs', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }) => HANDLERS[data.type](data);
  worker.onerror = onWorkerError;
  const threads = parameters.has('threads') ? Number(parameters.get('threads')) : undefined;
  worker.postMessage({ type: 'load', backend: parameters.get('backend') ?? 'auto', threads });
}

fillForm();
$('engine').textContent = engineName();
if (typeof WebAssembly === 'object') start();
else fail({ during: 'load', code: null, message: 'this browser has no WebAssembly' });
