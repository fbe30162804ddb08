/**
 * The listening side of `rdma-rpc perf`, as its command runs it. It runs once for each message. It reports
 * its port, and ends with its parent, which is tool.ts.
 *
 *   node dist/bench/verbs/listener.js DEVICE
 */
import { listen } from '../../cli/perf/listen.ts';

const [device] = process.argv.slice(2) as [string];
const say = (text: string): void => {
  const port = /^listening on .*:(\d+)$/.exec(text)?.[1];
  if (port !== undefined) process.send!(Number(port));
};
const options = { host: '127.0.0.1', port: 0, peers: 1, events: false, device, given: {}, say };

// The connecting side also reports errors, so they are ignored here.
process.on('message', () => void listen(options).catch(() => undefined));
