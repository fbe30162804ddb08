/**
 * Runs a server of one build, as a process: `server.mjs ADDRESS OPTIONS`, with the options of createServer as
 * JSON. builds.mjs copies it into each build, so that it imports that build. The server prints its address
 * once it listens. After SIGTERM, when all its calls have ended, it prints their number.
 */
import { createServer, RpcError, Status } from 'rdma-rpc';
import { peersOf } from 'rdma-rpc/reverse';
import { UpgradeDefinition } from './gen/upgrade.rdma.js';

const graceMs = 20_000;
const [address, options] = process.argv.slice(2);
const left = new Map();
let calls = 0;

const server = createServer({ ...JSON.parse(options), log: (line) => console.error(line) });
const peers = peersOf(server);

/**
 * The server keeps a copy, because the memory of a request belongs to its caller again when the handler has
 * ended.
 */
const leave = ({ number, data }) => void left.set(number, Buffer.from(data));

server.add(UpgradeDefinition, {
  echo(parcel) {
    ++calls;
    return parcel;
  },
  async *repeat({ number, data }) {
    ++calls;
    for (let index = 0; index < number; ++index) yield { number: index, data };
  },
  async collect(parcels) {
    ++calls;
    let number = 0;
    let data = new Uint8Array(0);
    for await (const parcel of parcels) {
      ++number;
      data = Buffer.from(parcel.data);
    }
    return { number, data };
  },
  async *exchange(parcels) {
    ++calls;
    for await (const parcel of parcels) yield parcel;
  },
  leave(parcel) {
    ++calls;
    leave(parcel);
  },
  fetch({ number }) {
    ++calls;
    const data = left.get(number);
    if (data === undefined) throw new RpcError(Status.NOT_FOUND, `nothing is left with number ${number}`);
    left.delete(number);
    return { number, data };
  },
  async callBack(parcel, context) {
    ++calls;
    return peers.client(UpgradeDefinition, context).echo(parcel);
  },
  async wait(parcel, { signal }) {
    ++calls;
    leave(parcel);
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    leave(parcel);
    throw new RpcError(Status.CANCELLED, 'the caller has gone');
  },
});

process.once('SIGTERM', async () => {
  await server.shutdown({ graceMs });
  console.log(JSON.stringify({ calls }));
});
console.log(await server.listen(address));
