// run: make js && node examples/readme.mjs
import { loadModel } from 'sunnynet';

const model = await loadModel('models/rwkv7-fairy.gguf'); // a path, URL, File, stream, bytes
console.log(`${model.info.architecture} on ${model.info.backend}`);

const story = model.generate('Once upon a time', { maxTokens: 40, seed: 7, bos: true });
for await (const { text } of story) process.stdout.write(text);
console.log('\n', (await story.result).reason);
model.dispose();
