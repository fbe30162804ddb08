/**
 * What `rdma-rpc info` and `doctor` know of this machine: what native code finds out by trying, beside the
 * files of the system.
 */

import { firstSessionBytes, nativeOptions } from '../../runtime/boundary/contexts.ts';
import { whyNoDevice } from '../../runtime/control/verbs-devices.ts';
import { type FabricName, fabricNames, fabrics } from '../../runtime/fabrics.ts';
import {
  loadNative,
  type NativeModule,
  type VerbsCapabilities,
  type VerbsReport,
} from '../../runtime/native/native.ts';

export interface FabricFact {
  readonly name: FabricName;
  /** Empty: it can be used. */
  readonly whyNot: string;
  /** Of those without devices, where they can be used; devices have their own. */
  readonly capabilities?: VerbsCapabilities;
}

export interface Facts {
  /** Why the addon does not load; empty: it does. What follows is then empty, too. */
  readonly whyNoAddon: string;
  readonly fabrics: readonly FabricFact[];
  readonly verbs: VerbsReport;
  /** What sessions can be sealed with; empty: there is no libcrypto. */
  readonly ciphers: readonly string[];
  /** What a context and its first session register on a device. */
  readonly firstBytes: number;
}

const message = (error: unknown): string => (error as Error).message.replace(/^rdma-rpc: /, '');

function opened(native: NativeModule, name: FabricName): FabricFact {
  try {
    const context = native.createContext(nativeOptions(name));
    const { capabilities } = context;
    context.close();
    return { name, whyNot: '', capabilities };
  } catch (error) {
    return { name, whyNot: message(error) };
  }
}

export function factsHere(): Facts {
  const firstBytes = firstSessionBytes();
  const none: VerbsReport = { whyNone: '', whyNoCm: '', memlock: '', devices: [] };
  let native: NativeModule;
  try {
    native = loadNative();
  } catch (error) {
    return { whyNoAddon: message(error), fabrics: [], verbs: none, ciphers: [], firstBytes };
  }
  const verbs = native.verbsDevices(firstBytes);
  return {
    whyNoAddon: '',
    fabrics: fabricNames.map((name) =>
      fabrics[name].hasDevice
        ? { name, whyNot: whyNoDevice(verbs).replace(/^verbs is off: /, '') }
        : opened(native, name),
    ),
    verbs,
    ciphers: native.ciphers,
    firstBytes,
  };
}
