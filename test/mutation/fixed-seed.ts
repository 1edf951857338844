import fc from 'fast-check';

// Whether a property notices a mutant must not depend on the run.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 1 });
