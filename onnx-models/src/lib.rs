//! Any ONNX file trainable through burn and runnable through tract.
