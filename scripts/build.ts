/**
 * Builds dist/: every module of src/ as ESM in dist/ and as CommonJS in dist/cjs/, file by file, with declarations for
 * both. One file in, one file out keeps what is loaded on demand out of `import 'carillon'`, and stack traces readable: what is
 * built reads like its source without types, so that no maps are needed, which would be half of the package.
 */
import { execFile } from 'node:child_process';
import { access, chmod, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type BuildOptions, build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist');
/** Built beside and moved into place, so that a build under way never shows a half-empty dist/. */
const STAGE = join(ROOT, `dist.${process.pid}`);

/** The command line, and its benches, are run, never required. */
const ESM_ONLY = ['cli', 'bench'];

const shared: BuildOptions = {
  platform: 'node',
  target: 'node20',
  bundle: false,
  logLevel: 'warning',
};

async function main(): Promise<void> {
  const sources = (await readdir(join(ROOT, 'src'), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
  const library = sources.filter(
    (file) => !ESM_ONLY.some((folder) => file.startsWith(join(ROOT, 'src', folder, '/'))),
  );

  await refuseImportMeta(library);
  try {
    await Promise.all([
      build({ ...shared, entryPoints: sources, outbase: join(ROOT, 'src'), outdir: STAGE, format: 'esm' }),
      build({
        ...shared,
        entryPoints: library,
        outbase: join(ROOT, 'src'),
        outdir: join(STAGE, 'cjs'),
        format: 'cjs',
        // There is no such thing in CommonJS; src/support/package-root.ts does without it.
        define: { 'import.meta.url': 'undefined' },
        // import() as a delayed require(): Jest runs no real one.
        supported: { 'dynamic-import': false },
      }),
      declarations(),
    ]);
    await declarationsForCommonJs();
    await makeExecutable();
    await replaceOutput();
  } finally {
    await rm(STAGE, { recursive: true, force: true });
  }
}

/** CommonJS has no `import.meta`: a module that reads it would be `undefined` there, and break only in use. */
async function refuseImportMeta(library: string[]): Promise<void> {
  for (const file of library) {
    const allowed = file === join(ROOT, 'src', 'support', 'package-root.ts');
    if (!allowed && (await readFile(file, 'utf8')).includes('import.meta')) {
      throw new Error(`${file} uses import.meta; ask src/support/package-root.ts for folders instead`);
    }
  }
}

async function declarations(): Promise<void> {
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  try {
    await promisify(execFile)(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', STAGE], {
      cwd: ROOT,
    });
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout || String(error));
  }
}

/** The same text is right for both: its imports are read as CommonJS below a package.json that says so. */
async function declarationsForCommonJs(): Promise<void> {
  const cjs = join(STAGE, 'cjs');
  await mkdir(cjs, { recursive: true });
  for (const entry of await readdir(STAGE, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const path = file.slice(STAGE.length + 1);
    if (
      !entry.name.endsWith('.d.ts') ||
      path.startsWith('cjs') ||
      ESM_ONLY.some((folder) => path.startsWith(`${folder}/`))
    )
      continue;
    await cp(file, join(cjs, path));
  }
  await writeFile(join(cjs, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`);
}

async function makeExecutable(): Promise<void> {
  const main = join(STAGE, 'cli', 'main.js');
  const exists = await access(main).then(
    () => true,
    () => false,
  );
  if (exists) await chmod(main, 0o755);
}

async function replaceOutput(): Promise<void> {
  await rm(OUT, { recursive: true, force: true });
  await rename(STAGE, OUT);
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
