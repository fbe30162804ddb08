import { allCases, converse, nameOf, nodeNet, ours } from './ends.ts';
const lib = process.argv[2] === 'net' ? nodeNet : ours(process.argv[2] as 'shm');
const all = allCases().filter((c) => nameOf(c).includes(process.argv[3] ?? ''));
for (const d of [[0,0],[0,4],[4,0]] as const) for (const c of all) {
  const r = await Promise.race([converse(lib, c, d), new Promise((r) => setTimeout(() => r('HANG'), 3000))]);
  if (r === 'HANG' || process.argv[3]) console.log(d, nameOf(c), r);
}
process.exit();
