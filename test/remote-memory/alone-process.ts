/**
 * Reads remote memory of a server and closes the channel. Nothing else keeps this process alive.
 *   Run it as: node alone-process.js ADDRESS FABRIC
 * alone.test.ts starts it, from dist.
 */
import { type ChannelOptions, createChannel, createClient } from 'rdma-rpc';
import { connectMemory } from 'rdma-rpc/memory';
import { TraderDefinition } from './gen/trade.rdma.ts';

const [address = '', fabric] = process.argv.slice(2);
const channel = createChannel(address, { fabric: fabric as NonNullable<ChannelOptions['fabric']> });
const memory = await connectMemory(channel);
const { memory: handle } = await createClient(TraderDefinition, channel).trade({});
const remote = await memory.open(handle!);
const into = new Uint8Array(8);
await remote.read(into);
console.log(into[0], into[7]);
await channel.close();
