/** The program of the server's pods: `node dist/examples/kubernetes/server.js`. Drains on SIGTERM. */
import { serveGreeter } from './greeter.ts';

const running = await serveGreeter();
console.log(`listening on ${running.address}`);
process.once('SIGTERM', () => {
  void running.drain().then(() => process.exit(0));
});
