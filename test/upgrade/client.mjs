/**
 * Runs a client of one build, as a process: `client.mjs ADDRESS OPTIONS`, with the options of createChannel
 * as JSON. The client makes every kind of call with messages of all sizes and compares every byte. builds.mjs
 * copies it into each build. The client prints as JSON which fabric it has used, the security of the session,
 * and null or the error for each check.
 */
import { createChannel, createClient, Status } from 'rdma-rpc';
import { serveReverse } from 'rdma-rpc/reverse';
import { UpgradeDefinition } from './gen/upgrade.rdma.js';

const [address, options] = process.argv.slice(2);
/**
 * The sizes are sent in one frame, in segments, and by READ and WRITE; the last is larger than staging memory
 * and every buffer of a socket.
 */
const sizes = { small: 100, medium: 24_000, large: 300_000, '16 MiB': 16 * 1024 * 1024 };
const timeoutMs = 60_000;
const fetchPauseMs = 5;
const fetchesMax = timeoutMs / fetchPauseMs;

const channel = createChannel(address, { ...JSON.parse(options), log: (line) => console.error(line) });
const client = createClient(UpgradeDefinition, channel, { '*': { timeoutMs } });
let lastNumber = 0;

/**
 * Returns different bytes for each number, without a pattern in which a lost or repeated block would go
 * unnoticed.
 */
function parcel(bytes) {
  const number = ++lastNumber;
  const data = Buffer.allocUnsafe(bytes);
  let word = number * 2_654_435_761;
  for (let at = 0; at < bytes; ++at) {
    word = (Math.imul(word, 1_664_525) + 1_013_904_223) >>> 0;
    data[at] = word >>> 24;
  }
  return { number, data };
}

function expect(got, wanted) {
  if (got.number !== wanted.number) throw new Error(`number ${got.number} instead of ${wanted.number}`);
  if (got.data.byteLength !== wanted.data.byteLength)
    throw new Error(`${got.data.byteLength} bytes instead of ${wanted.data.byteLength}`);
  const at = wanted.data.findIndex((byte, index) => got.data[index] !== byte);
  if (at !== -1) throw new Error(`byte ${at} of ${wanted.data.byteLength} differs`);
}

/** Returns the error with which a call fails. */
const failure = (promise) =>
  promise.then(
    () => Promise.reject(new Error('the call was answered')),
    (error) => error,
  );

/**
 * Resolves to the parcel that was left with this number, as soon as it is left. Handlers of one-way and
 * cancelled calls run after their calls.
 */
async function fetched(number) {
  for (let tries = 0; ; ++tries) {
    try {
      return await client.fetch({ number });
    } catch (error) {
      if (error.code !== Status.NOT_FOUND || tries === fetchesMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, fetchPauseMs));
    }
  }
}

const kinds = {
  async unary(bytes) {
    const sent = parcel(bytes);
    expect(await client.echo(sent), sent);
  },
  async 'server stream'(bytes) {
    const { data } = parcel(bytes);
    let number = 0;
    for await (const got of client.repeat({ number: 3, data })) expect(got, { number: number++, data });
    if (number !== 3) throw new Error(`${number} messages instead of 3`);
  },
  async 'client stream'(bytes) {
    const sent = [parcel(10), parcel(bytes), parcel(bytes)];
    expect(await client.collect(sent), { number: sent.length, data: sent.at(-1).data });
  },
  async 'bidirectional stream'(bytes) {
    const sent = [parcel(10), parcel(bytes), parcel(bytes)];
    let index = 0;
    for await (const got of client.exchange(sent)) expect(got, sent[index++]);
    if (index !== sent.length) throw new Error(`${index} messages instead of ${sent.length}`);
  },
  async 'one-way'(bytes) {
    const sent = parcel(bytes);
    await client.leave(sent);
    expect(await fetched(sent.number), sent);
  },
  async cancelled(bytes) {
    const sent = parcel(bytes);
    const abandon = new AbortController();
    const failed = failure(client.wait(sent, { signal: abandon.signal }));
    // The handler has begun.
    expect(await fetched(sent.number), sent);
    abandon.abort();
    const { code } = await failed;
    if (code !== Status.CANCELLED) throw new Error(`status ${code} instead of CANCELLED`);
    expect(await fetched(sent.number), sent);
  },
  async failing(bytes) {
    const error = await failure(client.fetch({ number: 4_000_000_000, data: parcel(bytes).data }));
    if (error.code !== Status.NOT_FOUND || !/nothing is left with number 4000000000/.test(error.message))
      throw error;
  },
};

const results = {};
async function check(name, action) {
  try {
    await action();
    results[name] = null;
  } catch (error) {
    results[name] = `${error.code === undefined ? '' : `${error.code}: `}${error.message}`;
  }
}

await check('connected', () => channel.ready());
if (results.connected === null) {
  for (const [kind, call] of Object.entries(kinds))
    for (const [size, bytes] of Object.entries(sizes)) await check(`${kind}, ${size}`, () => call(bytes));
  const serving = serveReverse(channel).add(UpgradeDefinition, { echo: (request) => request });
  await check('serves', () => serving.ready);
  if (results.serves === null) {
    for (const [size, bytes] of Object.entries(sizes)) {
      const sent = parcel(bytes);
      await check(`called back, ${size}`, async () => expect(await client.callBack(sent), sent));
    }
  }
  await serving.close();
  // Whatever the result of that call is, the connection still works as before.
  await check('unary behind that', () => kinds.unary(sizes['16 MiB']));
}
const { fabric, session } = channel;
await channel.close();
console.log(JSON.stringify({ fabric, security: session?.security, results }));
