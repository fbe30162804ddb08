/**
 * Decides whether to offer the verbs fabric, which depends on the RDMA devices of this machine. Channels and
 * servers use this file when they connect.
 */

import { firstSessionBytes } from '../boundary/contexts.ts';
import { clockMs } from '../clock.ts';
import { missingDeviceMs } from '../limits.ts';
import { loadNative, type VerbsReport } from '../native/native.ts';

/**
 * Names of devices that were usable at the last check, with '' for any device. They are cached because the
 * check opens the devices.
 */
const usable = new Set<string>();
/**
 * The reason why other devices were not usable, and the time until which this answer is cached. A device may
 * appear later, but a new check for each connection would take a twentieth of the connection's time.
 */
const missing = new Map<string, { readonly why: string; readonly untilMs: number }>();

/**
 * Returns whether the option `device` names this device. The option may be a name, a pattern with `*` and
 * `?`, or a list of these separated by commas. The verbs plug-in has the same rules
 * (native/fabric/verbs/open.cc).
 */
export function isNamed(option: string, device: string): boolean {
  return option.split(',').some((pattern) => {
    const literal = pattern.replaceAll(/[\\^$.+()[\]{}|]/g, '\\$&');
    return new RegExp(`^${literal.replaceAll(/\*+/g, '.*').replaceAll('?', '.')}$`).test(device);
  });
}

/**
 * Returns the reason why no device can be used, or the reason why the named device cannot be used. Returns ''
 * when a device can be used.
 */
export function whyNoDevice({ devices, whyNone }: VerbsReport, name = ''): string {
  const candidates = devices.filter((device) => name === '' || isNamed(name, device.name));
  if (candidates.some(({ whyNot }) => whyNot === '')) return '';
  if (devices.length === 0) return whyNone;
  if (candidates.length === 0) {
    const names = devices.map((device) => device.name).join(', ');
    return `there is no RDMA device ${name} here, only ${names} (option verbs.device, or RDMA_RPC_DEVICE)`;
  }
  return candidates.map((device) => `${device.name}: ${device.whyNot}`).join('; ');
}

/** Returns the result of `whyNoDevice` for this machine. Throws when the addon is missing. */
export function whyNoVerbs(name = ''): string {
  if (usable.has(name)) return '';
  const known = missing.get(name);
  const nowMs = clockMs();
  if (known !== undefined && nowMs < known.untilMs) return known.why;
  const why = whyNoDevice(loadNative().verbsDevices(firstSessionBytes(), name, 1), name);
  if (why === '') usable.add(name);
  else missing.set(name, { why, untilMs: nowMs + missingDeviceMs });
  return why;
}
