// node tests/lib/js-selftest.mjs BACKEND...: { backend, usable, lines } for each, as JSON lines.

const { backends, selftest } = await import('sunnynet');

for (const backend of process.argv.slice(2)) {
  const usable = backends().includes(backend);
  const lines = usable ? await selftest({ backend }) : [];
  console.log(JSON.stringify({ backend, usable, lines }));
}
