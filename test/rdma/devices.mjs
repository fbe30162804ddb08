/**
 * Lists the RDMA devices of this machine, as the kernel lists them. test/rdma/main.mjs asks for them before
 * it builds anything.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const entries = (folder) => (existsSync(folder) ? readdirSync(folder).sort() : []);

/** Returns "ACTIVE" for "4: ACTIVE". */
const stateOf = (port) =>
  readFileSync(join(port, 'state'), 'utf8')
    .trim()
    .replace(/^\d+: /, '');

function whyNotThis(name, sysfs) {
  const ports = join(sysfs, name, 'ports');
  const states = entries(ports).map((port) => [port, stateOf(join(ports, port))]);
  if (states.some(([, state]) => state === 'ACTIVE')) return '';
  const which = states.map(([port, state]) => `port ${port} is ${state}`).join(', ') || 'it has no port';
  return `${name} has no port that is ACTIVE: ${which}; is the link of its network interface up?`;
}

/**
 * Returns the reason why tests cannot run on `list`, or "" when they can. `list` is the value of --device:
 * one name, or two with a comma.
 */
export function whyNotDevices(list, sysfs = '/sys/class/infiniband') {
  const names = list.split(',');
  if (names.length > 2 || names.includes(''))
    return `--device wants a name, or two with a comma between them, not '${list}'`;
  const there = entries(sysfs);
  if (there.length === 0)
    return 'this machine has no RDMA device; without --device the tests run in a guest that has';
  const unknown = names.find((name) => !there.includes(name));
  if (unknown !== undefined) return `there is no RDMA device '${unknown}'; there is: ${there.join(', ')}`;
  return names.map((name) => whyNotThis(name, sysfs)).find((why) => why !== '') ?? '';
}
