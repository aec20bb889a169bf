// Ways to feed the same tokens to a model of the JavaScript API, in Node and in pages. Each gives
// the logits of every position, in order, as one or more Float32Arrays.

function steps(model, tokens) {
  const state = model.initState();
  return tokens.map((token) => model.step(token, state));
}

function chunks(model, tokens, n) {
  const state = model.initState();
  const rows = [];
  for (let i = 0; i < tokens.length; i += n)
    rows.push(model.prefillAll(tokens.slice(i, i + n), state));
  return rows;
}

/* n states at once, each one token behind the one before it; the rows of the one in the middle. */
function batch(model, tokens, n) {
  const middle = n >> 1;
  const states = Array.from({ length: n }, (_, k) => {
    const state = model.initState();
    for (let i = 0; i < middle - k; i++) state.step(tokens[i], null);
    return state;
  });
  return tokens.map((token, i) => {
    const ids = states.map((_, k) => tokens[i + middle - k] ?? token);
    return model.batch(states, ids)[middle];
  });
}

export const SCHEDULES = {
  steps,
  ...Object.fromEntries([1, 7, 48].map((n) =>
    [`chunks of ${n}`, (model, tokens) => chunks(model, tokens, n)])),
  'batch of 5': (model, tokens) => batch(model, tokens, 5),
};
