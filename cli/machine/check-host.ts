/** Checks of `rdma-rpc doctor`: fabrics, processors and how to poll, containers. */
import { fabricRow } from '../../runtime/fabrics.ts';
import type { Facts } from './facts.ts';
import { advice, type Finding, ok, problem } from './findings.ts';
import { kernelDevices, type Machine, numberIn } from './machine.ts';

export function checkAddon(_: Machine, { whyNoAddon }: Facts): Finding[] {
  return whyNoAddon === ''
    ? [ok('addon', 'the native addon loads')]
    : [
        problem(
          'addon',
          whyNoAddon,
          'reinstall, or npx rdma-rpc build-addon; channels within one process work without it',
        ),
      ];
}

export function checkFabrics(_: Machine, { fabrics }: Facts): Finding[] {
  return fabrics
    .filter(({ name }) => !fabricRow(name).hasDevice) // devices have separate checks
    .map(({ name, whyNot }) =>
      whyNot === ''
        ? ok('fabrics', `${name} can be used`)
        : problem(
            'fabrics',
            `${name} cannot be used: ${whyNot}`,
            'see the message; the other fabrics still work',
          ),
    );
}

/** Returns the number of processors in the kernel's list, such as `0-3,8`. */
function processors(machine: Machine): number {
  const ranges = (machine.text('/sys/devices/system/cpu/online') ?? '0').split(',');
  return ranges.reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + last - first + 1;
  }, 0);
}

/** Returns the number of processors that a cgroup allows; undefined without a limit. */
function quota(machine: Machine): number | undefined {
  const [time, period] = (machine.text('/sys/fs/cgroup/cpu.max') ?? 'max').split(' ').map(Number);
  return time === undefined || Number.isNaN(time) || period === undefined ? undefined : time / period;
}

/** Waking from a sleep state whose latency is above this costs more time than a call. */
const slowWakeUs = 50;

export function checkProcessors(machine: Machine): Finding[] {
  const found: Finding[] = [];
  const governor = machine.text('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor');
  if (governor !== undefined && governor !== 'performance')
    found.push(
      advice(
        'processor',
        `the governor is ${governor}: a processor that slows down between calls answers late`,
        'cpupower frequency-set -g performance',
      ),
    );
  const idle = '/sys/devices/system/cpu/cpu0/cpuidle';
  const slow = machine.names(idle).find((state) => {
    const off = machine.text(`${idle}/${state}/disable`) === '1';
    return !off && (numberIn(machine, `${idle}/${state}/latency`) ?? 0) > slowWakeUs;
  });
  if (slow !== undefined)
    found.push(
      advice(
        'processor',
        `sleep state ${machine.text(`${idle}/${slow}/name`) ?? slow} takes ${machine.text(`${idle}/${slow}/latency`)} us to wake from`,
        "configure({ polling: 'busy' }) where latency matters, or cpupower idle-set -D 50",
      ),
    );
  return found.length === 0 ? [ok('processor', `${processors(machine)} online`)] : found;
}

export function checkPolling(machine: Machine): Finding[] {
  const allowed = quota(machine);
  const online = processors(machine);
  if (allowed !== undefined && allowed < online && allowed < 2)
    return [
      advice(
        'polling',
        `a cgroup allows ${allowed} processor${allowed === 1 ? '' : 's'}: time spent polling is missing for calls`,
        "configure({ polling: 'event' })",
      ),
    ];
  if (online === 1)
    return [
      advice(
        'polling',
        'one processor: a process that polls keeps its peer from running',
        "configure({ polling: 'event' })",
      ),
    ];
  return [ok('polling', "'adaptive' suits; 'busy' only with a processor for each thread")];
}

/** The kernel's initial pid namespace: PROC_PID_INIT_INO. */
const firstPidNamespace = 'pid:[4026531836]';

function isContainer(machine: Machine): boolean {
  return (
    machine.exists('/.dockerenv') ||
    machine.exists('/run/.containerenv') ||
    /docker|kubepods|containerd|lxc/.test(machine.text('/proc/1/cgroup') ?? '')
  );
}

export function checkContainer(machine: Machine): Finding[] {
  const found: Finding[] = [];
  const namespace = machine.link('/proc/self/ns/pid');
  if (namespace !== undefined && namespace !== firstPidNamespace)
    found.push(
      advice(
        'container',
        'a separate pid namespace: shm reaches no process outside of it; shm-fd reaches peers through a shared unix socket',
        'listen on unix:/PATH in a volume that both have; or shareProcessNamespace: true in a pod, --pid=container:NAME with docker',
      ),
    );
  if (/^Seccomp:\s*2$/m.test(machine.text('/proc/self/status') ?? ''))
    found.push(
      advice(
        'container',
        'a seccomp filter is active: if it forbids process_vm_readv, large messages over shm are copied once more',
        'a profile that allows process_vm_readv and process_vm_writev',
      ),
    );
  if (
    isContainer(machine) &&
    kernelDevices(machine).length > 0 &&
    machine.names('/sys/class/net').length <= 2
  )
    found.push(
      advice(
        'container',
        'a separate network namespace: RoCE and iWARP need the interface of the device',
        '--network=host, or the interface moved into the container (SR-IOV)',
      ),
    );
  if (found.length > 0) return found;
  return [ok('container', isContainer(machine) ? 'a container without restrictions that matter' : 'none')];
}
