/** Which layer may know which: the arrows of docs/ARCHITECTURE.md, as rules that a test applies to imports and includes. */

export interface LayerRule {
  /** Files that the rule is about. */
  readonly files: RegExp;
  /** What they may import or include of this project, besides files of their own folder; paths relative to the root. */
  readonly mayUse: RegExp;
}

export const typescriptLayers: readonly LayerRule[] = [
  { files: /^runtime\/(limits|native-remedy|native-stats|verbs-report)\.ts$/, mayUse: /^$/ },
  {
    files: /^runtime\/(native|js-runtime|addon-path)\.ts$/,
    mayUse: /^runtime\/(native|addon-path|js-runtime|native-remedy|native-stats|verbs-report)\.ts$/,
  },
  { files: /^runtime\/codec\//, mayUse: /^runtime\/codec\// },
  { files: /^runtime\//, mayUse: /^runtime\// },
  { files: /^codegen\//, mayUse: /^codegen\/|^runtime\/codec\// },
  { files: /^cli\//, mayUse: /^(cli|codegen|runtime)\// },
  { files: /^examples\//, mayUse: /^examples\// },
];

/** fabric < memory < session < binding. Nobody but a fabric itself and the binding knows a fabric by name. */
export const nativeLayers: readonly LayerRule[] = [
  { files: /^native\/fabric\/[^/]+$/, mayUse: /^native\/fabric\/[^/]+$/ },
  { files: /^native\/fabric\/sim\//, mayUse: /^native\/fabric\/(sim\/)?[^/]+$/ },
  { files: /^native\/fabric\/shm\//, mayUse: /^native\/fabric\/(shm\/)?[^/]+$/ },
  { files: /^native\/fabric\/verbs\//, mayUse: /^native\/fabric\/(verbs\/)?[^/]+$/ },
  { files: /^native\/memory\//, mayUse: /^native\/(memory\/|fabric\/fabric\.h$)/ },
  { files: /^native\/session\//, mayUse: /^native\/(session\/|memory\/|fabric\/fabric\.h$)/ },
  { files: /^native\/binding\//, mayUse: /^native\/(binding|session|memory|fabric)\// },
];

/** The first rule that covers a file decides. Returns what it uses and may not. */
export function violations(file: string, uses: readonly string[], rules: readonly LayerRule[]): string[] {
  const rule = rules.find((candidate) => candidate.files.test(file));
  if (rule === undefined) return [];
  return uses.filter((used) => !rule.mayUse.test(used)).map((used) => `${file} uses ${used}`);
}
