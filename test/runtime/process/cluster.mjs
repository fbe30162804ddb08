/**
 * Runs as a main process of node:cluster with two workers that listen at one address, for unix-path.test.ts.
 * The process prints the result of each worker as a line of JSON.
 */
import cluster from 'node:cluster';
import { createServer } from 'rdma-rpc';

const workers = 2;
if (cluster.isPrimary) {
  const results = [];
  for (let i = 0; i < workers; ++i) cluster.fork();
  cluster.on('message', (_, result) => {
    results.push(result);
    if (results.length < workers) return;
    console.log(JSON.stringify(results));
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGKILL');
  });
} else {
  const server = createServer({ log: () => undefined });
  const result = await server.listen(process.argv[2]).then(
    () => 'listens',
    (error) => error.message,
  );
  process.send(result);
  // The main process ends this worker.
  setInterval(() => undefined, 60_000);
}
