/**
 * The ping-pongs of libibverbs (`ibv_rc_pingpong` and its siblings) in TypeScript: `node
 * dist/examples/pingpong/main.js [rc|uc|ud|srq|xsrq|multicast] [flags] [HOST]`. The exit code is 0 when all
 * messages were exchanged, 1 when the device cannot exchange them or an error occurred, and 2 for a wrong
 * command line.
 */
import { type Options, optionsOf, usage } from './options.ts';
import { play } from './play.ts';

async function main(options: Options): Promise<void> {
  const { bytes, bytesChecked, rounds, seconds } = await play(options, console.error);
  const mbits = (bytes * 8) / seconds / 1e6;
  console.log(
    `${options.kind} on ${options.device}: ${bytes} bytes in ${seconds.toFixed(3)} seconds = ${mbits.toFixed(2)} Mbit/sec`,
  );
  console.log(
    `${rounds} iters in ${seconds.toFixed(3)} seconds = ${((seconds * 1e6) / rounds).toFixed(2)} usec/iter`,
  );
  console.log(`${bytesChecked} bytes checked`);
}

let options: Options | undefined;
try {
  options = optionsOf(process.argv.slice(2));
} catch (error) {
  console.error(`error: ${(error as Error).message}\n${usage}`);
  process.exitCode = 2;
}
if (options !== undefined) {
  const { kind, device } = options;
  await main(options).catch((error: unknown) => {
    console.error(`error: ${kind} on ${device}: ${(error as Error).message}`);
    process.exitCode = 1;
  });
}
