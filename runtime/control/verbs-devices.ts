/** Whether the verbs fabric is worth offering: what the RDMA devices of this machine say. Used by channels and servers when they connect. */
import { firstSessionBytes } from '../lane/contexts.ts';
import { loadNative, type VerbsReport } from '../native.ts';

/** Devices that could be used when last asked, '' for any. Kept, since asking opens them; that there is none is asked anew. */
const usable = new Set<string>();

/** Why no device can be used, or not the one that is named; '' when one can. */
export function whyNoDevice({ devices, whyNone }: VerbsReport, name = ''): string {
  const candidates = devices.filter((device) => name === '' || device.name === name);
  if (candidates.some(({ whyNot }) => whyNot === '')) return '';
  if (devices.length === 0) return whyNone;
  if (candidates.length === 0) {
    const names = devices.map((device) => device.name).join(', ');
    return `there is no RDMA device ${name} here, only ${names} (option verbs.device, or RDMA_RPC_DEVICE)`;
  }
  return candidates.map((device) => `${device.name}: ${device.whyNot}`).join('; ');
}

/** As above, for this machine. Throws when the addon is missing. */
export function whyNoVerbs(name = ''): string {
  if (usable.has(name)) return '';
  const why = whyNoDevice(loadNative().verbsDevices(firstSessionBytes()), name);
  if (why === '') usable.add(name);
  return why;
}
