//! The shipped models; README.md describes each.

macro_rules! shipped {
    ($($constant:ident $name:literal),* $(,)?) => {
        $(
            #[doc = concat!("The file `", $name, ".onnx`.")]
            pub const $constant: &[u8] = include_bytes!(concat!("../models/", $name, ".onnx"));
        )*

        /// All names, as [`by_name`] takes them.
        pub const NAMES: &[&str] = &[$($name),*];

        /// A shipped model by the name of its file.
        pub fn by_name(name: &str) -> Option<&'static [u8]> {
            match name {
                $($name => Some($constant),)*
                _ => None,
            }
        }
    };
}

shipped! {
    ELECTRICITY_RNN "electricity-rnn",
    LOAD_QUANTILES "load-quantiles",
    ELECTRICITY_MLP "electricity-mlp",
    HFT_MLP "hft-mlp",
    MNIST_CNN "mnist-cnn",
    CIFAR_CNN "cifar-cnn",
    PATH_CNN "path-cnn",
    DQN_NATURE "dqn-nature",
    DQN_GRID "dqn-grid",
    DQN_MINATAR_4 "dqn-minatar-4",
    DQN_MINATAR_6 "dqn-minatar-6",
}
