/**
 * A check of `rdma-rpc doctor`: compares the NUMA node of each device with the processors that this process
 * may use. When memory or interrupts are on another node, each packet crosses the link between the nodes.
 */
import { advice, type Finding, ok } from './findings.ts';
import { kernelDevices, type Machine } from './machine.ts';

/** Returns the numbers in a list such as `0-3,8`. */
function numbersOf(list: string): Set<number> {
  const numbers = new Set<number>();
  for (const range of list.split(',').filter((text) => /^\d+(-\d+)?$/.test(text))) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let number = first; number <= last; ++number) numbers.add(number);
  }
  return numbers;
}

/**
 * Returns the node of a device, or undefined when the machine has only one node, or when the kernel does not
 * know the node.
 */
export function nodeOf(machine: Machine, device: string): number | undefined {
  const text = machine.text(`/sys/class/infiniband/${device}/device/numa_node`);
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/** Returns the nodes whose processors this process may use. */
export function ownNodes(machine: Machine): readonly number[] {
  const [, allowed = ''] =
    /^Cpus_allowed_list:\s*(\S+)$/m.exec(machine.text('/proc/self/status') ?? '') ?? [];
  const mine = numbersOf(allowed);
  return machine
    .names('/sys/devices/system/node')
    .filter((name) => /^node\d+$/.test(name))
    .filter((name) => {
      const theirs = numbersOf(machine.text(`/sys/devices/system/node/${name}/cpulist`) ?? '');
      return [...theirs].some((cpu) => mine.has(cpu));
    })
    .map((name) => Number(name.slice('node'.length)))
    .sort((a, b) => a - b);
}

export function checkNuma(machine: Machine): Finding[] {
  const nodes = ownNodes(machine);
  return kernelDevices(machine).flatMap((device) => {
    const node = nodeOf(machine, device);
    if (node === undefined || nodes.length === 0) return [];
    if (nodes.length === 1 && nodes[0] === node)
      return [ok('numa', `${device} and this process are on node ${node}`)];
    const where = nodes.length === 1 ? `node ${nodes[0]}` : `nodes ${nodes.join(', ')}`;
    return [
      advice(
        'numa',
        `${device} is on NUMA node ${node}, and this process may run on ${where}`,
        `numactl --cpunodebind=${node} --membind=${node} node …, or the cpuset of the container`,
      ),
    ];
  });
}
